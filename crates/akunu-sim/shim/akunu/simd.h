// Operations across the 32 lanes of a SIMD group, the 4 of a quad, and barriers.
//
// Lanes hand each other numbers of up to 32 bits and vectors of them, nothing else. Every lane of the group must take part. The backend gives shuffle, reduce, scan, ballot and barriers.
#pragma once

namespace akunu {

struct Add { template <typename T> static T apply(T a, T b) { return (T)(a + b); } };
struct Multiply { template <typename T> static T apply(T a, T b) { return (T)(a * b); } };
struct Minimum { template <typename T> static T apply(T a, T b) { return metal::min(a, b); } };
struct Maximum { template <typename T> static T apply(T a, T b) { return metal::max(a, b); } };
struct And { template <typename T> static T apply(T a, T b) { return (T)(a & b); } };
struct Or { template <typename T> static T apply(T a, T b) { return (T)(a | b); } };
struct Xor { template <typename T> static T apply(T a, T b) { return (T)(a ^ b); } };

} // namespace akunu

namespace metal {

enum class mem_flags : uint {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_texture = 4,
    mem_threadgroup_imageblock = 8,
};
inline mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((uint)a | (uint)b); }

inline void threadgroup_barrier(mem_flags flags, AKUNU_SITE) {
    akunu::backend::threadgroup_barrier((uint)flags, AKUNU_HERE);
}
// A barrier that orders no memory is where a kernel begins to read what the one before it has written.
inline void simdgroup_barrier(mem_flags flags, AKUNU_SITE) {
    if (flags == mem_flags::mem_none) {
        akunu::backend::inputs_are_ready(AKUNU_HERE);
    } else {
        akunu::backend::simdgroup_barrier((uint)flags, AKUNU_HERE);
    }
}

#define AKUNU_REDUCE(NAME, OPERATION, ALLOWED)                                      \
    template <typename T> inline akunu::ALLOWED<T> simd_##NAME(T x, AKUNU_SITE) {   \
        return akunu::backend::reduce<akunu::OPERATION>(x, AKUNU_HERE);             \
    }                                                                               \
    template <typename T> inline akunu::ALLOWED<T> quad_##NAME(T x, AKUNU_SITE) {   \
        x = akunu::OPERATION::apply(x, akunu::backend::shuffle(x, akunu::backend::lane() ^ 1, AKUNU_HERE)); \
        return akunu::OPERATION::apply(x, akunu::backend::shuffle(x, akunu::backend::lane() ^ 2, AKUNU_HERE)); \
    }

AKUNU_REDUCE(sum, Add, if_shared)
AKUNU_REDUCE(product, Multiply, if_shared)
AKUNU_REDUCE(min, Minimum, if_shared)
AKUNU_REDUCE(max, Maximum, if_shared)
AKUNU_REDUCE(and, And, if_bits)
AKUNU_REDUCE(or, Or, if_bits)
AKUNU_REDUCE(xor, Xor, if_bits)

template <typename T> inline akunu::if_shared<T> simd_prefix_inclusive_sum(T x, AKUNU_SITE) {
    return akunu::backend::scan<akunu::Add>(x, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_prefix_inclusive_product(T x, AKUNU_SITE) {
    return akunu::backend::scan<akunu::Multiply>(x, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_prefix_exclusive_sum(T x, AKUNU_SITE) {
    T all = akunu::backend::scan<akunu::Add>(x, AKUNU_HERE);
    T before = akunu::backend::shuffle(all, (akunu::backend::lane() + 31) % 32, AKUNU_HERE);
    return akunu::backend::lane() == 0 ? (T)0 : before;
}

template <typename T> inline akunu::if_shared<T> simd_shuffle(T x, ushort lane, AKUNU_SITE) {
    return akunu::backend::shuffle(x, lane % 32, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_shuffle_xor(T x, ushort mask, AKUNU_SITE) {
    return akunu::backend::shuffle(x, (akunu::backend::lane() ^ mask) % 32, AKUNU_HERE);
}
// Lanes without a source keep their own value.
template <typename T> inline akunu::if_shared<T> simd_shuffle_up(T x, ushort delta, AKUNU_SITE) {
    uint lane = akunu::backend::lane();
    return akunu::backend::shuffle(x, lane >= delta ? lane - delta : lane, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_shuffle_down(T x, ushort delta, AKUNU_SITE) {
    uint lane = akunu::backend::lane();
    return akunu::backend::shuffle(x, lane + delta < 32 ? lane + delta : lane, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_shuffle_rotate_up(T x, ushort delta, AKUNU_SITE) {
    return akunu::backend::shuffle(x, (akunu::backend::lane() + 32 - delta % 32) % 32, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_shuffle_rotate_down(T x, ushort delta, AKUNU_SITE) {
    return akunu::backend::shuffle(x, (akunu::backend::lane() + delta) % 32, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_broadcast(T x, ushort lane, AKUNU_SITE) {
    return akunu::backend::shuffle(x, lane % 32, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> simd_broadcast_first(T x, AKUNU_SITE) {
    return akunu::backend::shuffle(x, 0, AKUNU_HERE);
}

class simd_vote {
  public:
    typedef ulong vote_t;
    explicit simd_vote(vote_t bits) : bits(bits) {}
    explicit operator vote_t() const { return bits; }
    bool any() const { return bits != 0; }
    bool all() const { return bits == akunu::backend::active_lanes(); }

  private:
    vote_t bits;
};

inline simd_vote simd_ballot(bool x, AKUNU_SITE) {
    return simd_vote(akunu::backend::ballot(x, AKUNU_HERE));
}
inline bool simd_any(bool x, AKUNU_SITE) { return akunu::backend::ballot(x, AKUNU_HERE) != 0; }
inline bool simd_all(bool x, AKUNU_SITE) {
    return akunu::backend::ballot(x, AKUNU_HERE) == akunu::backend::active_lanes();
}
inline bool simd_is_first() { return akunu::backend::lane() == 0; }

template <typename T> inline akunu::if_shared<T> quad_shuffle(T x, ushort lane, AKUNU_SITE) {
    return akunu::backend::shuffle(x, (akunu::backend::lane() & ~3u) + lane % 4, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> quad_shuffle_xor(T x, ushort mask, AKUNU_SITE) {
    return akunu::backend::shuffle(x, akunu::backend::lane() ^ (mask % 4), AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> quad_broadcast(T x, ushort lane, AKUNU_SITE) {
    return quad_shuffle(x, lane, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> quad_shuffle_up(T x, ushort delta, AKUNU_SITE) {
    uint lane = akunu::backend::lane();
    return akunu::backend::shuffle(x, lane % 4 >= delta ? lane - delta : lane, AKUNU_HERE);
}
template <typename T> inline akunu::if_shared<T> quad_shuffle_down(T x, ushort delta, AKUNU_SITE) {
    uint lane = akunu::backend::lane();
    return akunu::backend::shuffle(x, lane % 4 + delta < 4 ? lane + delta : lane, AKUNU_HERE);
}

} // namespace metal
