// Integer functions, on scalars and vectors.
#pragma once

namespace metal {

template <typename T> inline akunu::if_integer<T> min(T x, T y) {
    return akunu::map(x, y, [](auto a, auto b) { return b < a ? b : a; });
}
template <typename T> inline akunu::if_integer<T> max(T x, T y) {
    return akunu::map(x, y, [](auto a, auto b) { return a < b ? b : a; });
}
template <typename T> inline akunu::if_integer<T> min(T x, T y, T z) { return min(min(x, y), z); }
template <typename T> inline akunu::if_integer<T> max(T x, T y, T z) { return max(max(x, y), z); }
template <typename T> inline akunu::if_integer<T> clamp(T x, T low, T high) {
    return min(max(x, low), high);
}
template <typename T> inline akunu::if_integer<T> abs(T x) {
    return akunu::map(x, [](auto a) { return a < 0 ? -a : a; });
}

// Bits of an element, however narrow it is.
template <typename T> inline akunu::if_integer<T> popcount(T x) {
    return akunu::map(x, [](auto a) {
        return __builtin_popcountll((ulong)a & (~0ul >> (64 - 8 * sizeof(a))));
    });
}
template <typename T> inline akunu::if_integer<T> clz(T x) {
    return akunu::map(x, [](auto a) {
        constexpr int bits = 8 * sizeof(a);
        ulong wide = (ulong)a & (~0ul >> (64 - bits));
        return wide == 0 ? bits : __builtin_clzll(wide) - (64 - bits);
    });
}
template <typename T> inline akunu::if_integer<T> ctz(T x) {
    return akunu::map(x, [](auto a) {
        return a == 0 ? (int)(8 * sizeof(a)) : __builtin_ctzll((ulong)a);
    });
}
template <typename T> inline akunu::if_integer<T> reverse_bits(T x) {
    return akunu::map(x, [](auto a) {
        ulong wide = __builtin_bitreverse64((ulong)a);
        return wide >> (64 - 8 * sizeof(a));
    });
}
template <typename T> inline akunu::if_integer<T> rotate(T x, T n) {
    return akunu::map(x, n, [](auto a, auto by) {
        constexpr uint bits = 8 * sizeof(a);
        ulong wide = (ulong)a & (~0ul >> (64 - bits));
        uint shift = (uint)by % bits;
        return shift == 0 ? wide : (wide << shift) | (wide >> (bits - shift));
    });
}

// `bits` bits from `offset` on, sign-extended for signed types.
template <typename T> inline akunu::if_integer<T> extract_bits(T x, uint offset, uint bits) {
    if (bits == 0) return (T)0;
    return akunu::map(x, [=](auto a) {
        constexpr uint width = 8 * sizeof(a);
        return (decltype(a))((decltype(a))((ulong)a << (width - bits - offset)) >> (width - bits));
    });
}
template <typename T> inline akunu::if_integer<T> insert_bits(T base, T insert, uint offset, uint bits) {
    if (bits == 0) return base;
    return akunu::map(base, insert, [=](auto a, auto b) {
        ulong mask = (~0ul >> (64 - bits)) << offset;
        return ((ulong)a & ~mask) | (((ulong)b << offset) & mask);
    });
}

inline int mul24(int x, int y) { return (int)((uint)x * (uint)y); }
inline uint mul24(uint x, uint y) { return x * y; }
inline int mad24(int x, int y, int z) { return (int)((uint)x * (uint)y + (uint)z); }
inline uint mad24(uint x, uint y, uint z) { return x * y + z; }
inline int mulhi(int x, int y) { return (int)(((long)x * (long)y) >> 32); }
inline uint mulhi(uint x, uint y) { return (uint)(((ulong)x * (ulong)y) >> 32); }
inline ulong mulhi(ulong x, ulong y) { return (ulong)(((unsigned __int128)x * y) >> 64); }

} // namespace metal
