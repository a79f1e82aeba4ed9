// Spans (format/span.h) as bytes, for products in whole numbers.
//
// 32 weights are bytes q with a scale and an offset: value = scale * q + offset; q6_k has a pair of them for each 16. x is a
// span of whole numbers v of 16 bits with one factor, v = 256 * high + low, and dot4 multiplies four bytes by four bytes at
// once:
//
//     sum(value * x) = scale * factor * (256 * sum(q * high) + sum(q * low)) + offset * factor * sum(v)
//
// Of x, 16 bits are kept: its largest value of a span has 15 and a sign. What is added up in whole numbers is exact.
//
// Upper nibbles stay where they are, and count sixteen times: a mask instead of a shift and a mask.
#pragma once

#include <akunu_tensor>

#include "include/format/span.h"

// A span of x in threadgroup memory.
struct IntegerX {
    uint4 high[2];
    uint4 low[2];
    float factor;
    float2 sums;  // of factor * v, by half
};

// The span that a lane loads: `load` does nothing but loads, `dot` does the rest.
template <typename F>
struct ByteSpans {
    static constant constexpr bool EXIST = false;
};

constant constexpr uint LOWER = 0x0f0f0f0fu;
constant constexpr uint UPPER = 0xf0f0f0f0u;

// sum(q * v) of 16 bytes of each, q from 0 to 255.
inline int dot_half(uint4 q, thread const IntegerX &x, uint h) {
    int of_high = 0;
    int of_low = 0;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        of_high = nvidia::dot4_unsigned(q[i], x.high[h][i], of_high);
        of_low = nvidia::dot4_unsigned(q[i], x.low[h][i], of_low);
    }
    return of_high * 256 + of_low;
}

// The same of 32 bytes.
inline int dot_whole(uint4 first, uint4 second, thread const IntegerX &x) {
    return dot_half(first, x, 0) + dot_half(second, x, 1);
}

// 16 * sum(q * v) of nibbles, the lower ones for the first half.
inline int dot_nibbles(uint4 bytes, thread const IntegerX &x) {
    return 16 * dot_half(bytes & LOWER, x, 0) + dot_half(bytes & UPPER, x, 1);
}

inline float sum_of(thread const IntegerX &x) { return x.sums.x + x.sums.y; }

// Bits 0 to 3, each as the fifth bit of a byte.
inline uint fifth_bits(uint bits) { return ((bits & 15) * 0x00204081u & 0x01010101u) << 4; }

// N words that begin at a multiple of 2 bytes: where that is in the middle of a word, they lie across those of memory.
template <uint N>
struct AcrossWords {
    uint word[N];
    uint half_word;  // the rest of the last word, or what is read instead
    bool is_across;

    // From half word `begin` of a row on; half word `instead` is read where there is no rest.
    static AcrossWords<N> load(BlockRow row, uint begin, uint instead) {
        AcrossWords<N> out;
        out.is_across = begin % 2 != 0;
        device const uint *from = row.words + begin / 2;
#pragma unroll
        for (uint i = 0; i < N; i++) {
            out.word[i] = from[i];
        }
        out.half_word = row.half_word(out.is_across ? begin + 2 * N - 1 : instead);
        return out;
    }

    uint operator[](uint i) const {
        const uint next = i + 1 < N ? word[i + 1] : half_word;
        return nvidia::permute(word[i], next, is_across ? 0x5432 : 0x3210);
    }

    uint4 four(uint first) const {
        return uint4((*this)[first], (*this)[first + 1], (*this)[first + 2], (*this)[first + 3]);
    }
};

// A block of a scale of two bytes and N words.
template <uint N>
struct ScaledBlock {
    AcrossWords<N> words;

    static ScaledBlock<N> load(BlockRow row, uint index) {
        const uint begin = index * (2 * N + 1) + row.odd;
        return { AcrossWords<N>::load(row, begin + 1, begin) };
    }
    // Before words that lie across others it is the lower half of the first.
    float scale() const { return half_value((words.is_across ? words.word[0] : words.half_word) & 0xffff); }
};

template <>
struct ByteSpans<FormatQ4_0> {
    static constant constexpr bool EXIST = true;
    typedef ScaledBlock<4> Span;

    static Span load(BlockRow row, uint index, uint) { return Span::load(row, index); }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        return span.scale() * (x.factor / 16.0f * float(dot_nibbles(span.words.four(0), x)) - 8.0f * sum_of(x));
    }
};

template <>
struct ByteSpans<FormatQ4_1> {
    static constant constexpr bool EXIST = true;
    typedef Spans<FormatQ4_1>::Span Span;

    static Span load(BlockRow row, uint index, uint) { return Spans<FormatQ4_1>::load(row, index); }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        const uint4 bytes = uint4(span.word[1], span.word[2], span.word[3], span.word[4]);
        const float d = half_value(span.word[0] & 0xffff);
        return d * (x.factor / 16.0f * float(dot_nibbles(bytes, x))) + half_value(span.word[0] >> 16) * sum_of(x);
    }
};

template <>
struct ByteSpans<FormatQ5_0> {
    static constant constexpr bool EXIST = true;
    typedef ScaledBlock<5> Span;  // the fifth bits, then the nibbles

    static Span load(BlockRow row, uint index, uint) { return Span::load(row, index); }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        const uint bits = span.words[0];
        const uint4 bytes = span.words.four(1);
        const uint4 first = uint4(fifth_bits(bits), fifth_bits(bits >> 4), fifth_bits(bits >> 8), fifth_bits(bits >> 12));
        const uint4 second =
            uint4(fifth_bits(bits >> 16), fifth_bits(bits >> 20), fifth_bits(bits >> 24), fifth_bits(bits >> 28));
        const int sum = dot_whole((bytes & LOWER) | first, (bytes >> 4 & LOWER) | second, x);
        return span.scale() * (x.factor * float(sum) - 16.0f * sum_of(x));
    }
};

template <>
struct ByteSpans<FormatQ8_0> {
    static constant constexpr bool EXIST = true;
    typedef ScaledBlock<8> Span;

    static Span load(BlockRow row, uint index, uint) { return Span::load(row, index); }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        int of_high = 0;
        int of_low = 0;
#pragma unroll
        for (uint i = 0; i < 8; i++) {
            const uint q = span.words[i];
            of_high = nvidia::dot4(q, x.high[i / 4][i % 4], of_high);
            of_low = nvidia::dot4(q, x.low[i / 4][i % 4], of_low);
        }
        return span.scale() * (x.factor * float(of_high * 256 + of_low));
    }
};

// Nibbles of group `group` of a super-block.
inline uint group_mask(uint group) { return group % 2 == 0 ? LOWER : UPPER; }

template <>
struct ByteSpans<FormatQ4K> {
    static constant constexpr bool EXIST = true;
    struct Span {
        uint4 head;
        Bytes32 qs;
        uint group;
    };

    static Span load(device const uint4 *row, uint index, uint group) {
        device const uint4 *block = row + index / 8 * (sizeof(block_q4_k) / 16);
        return { block[0], Bytes32::load(block + 1 + group / 2 * 2), group };
    }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        const uint mask = group_mask(span.group);
        const float factor = span.group % 2 == 0 ? x.factor : x.factor / 16.0f;
        const float2 affine = group_affine(span.head, span.group);
        const int sum = dot_whole(span.qs.first & mask, span.qs.second & mask, x);
        return affine.x * (factor * float(sum)) + affine.y * sum_of(x);
    }
};

template <>
struct ByteSpans<FormatQ5K> {
    static constant constexpr bool EXIST = true;
    struct Span {
        uint4 head;
        Bytes32 qh;
        Bytes32 qs;
        uint group;
    };

    static Span load(device const uint4 *row, uint index, uint group) {
        device const uint4 *block = row + index / 8 * (sizeof(block_q5_k) / 16);
        return { block[0], Bytes32::load(block + 1), Bytes32::load(block + 3 + group / 2 * 2), group };
    }
    static uint4 bytes_of(uint4 low, uint4 fifth, uint group) {
        return (low >> (group % 2 * 4) & LOWER) | (fifth >> group & 0x01010101u) << 4;
    }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        const float2 affine = group_affine(span.head, span.group);
        const uint4 first = bytes_of(span.qs.first, span.qh.first, span.group);
        const uint4 second = bytes_of(span.qs.second, span.qh.second, span.group);
        return affine.x * (x.factor * float(dot_whole(first, second, x))) + affine.y * sum_of(x);
    }
};

template <>
struct ByteSpans<FormatQ6K> {
    static constant constexpr bool EXIST = true;
    struct Span {
        AcrossWords<8> ql;
        AcrossWords<8> qh;
        uint scales;  // two of 8 bits
        uint d;
        uint group;
    };

    // The half words of a super-block: 64 of ql, 32 of qh, 8 of scales and the factor of all.
    static Span load(BlockRow row, uint index, uint group) {
        const uint begin = index / 8 * (sizeof(block_q6_k) / 2) + row.odd;
        const uint scales = begin + 96 + group;
        return {
            AcrossWords<8>::load(row, begin + group / 4 * 32 + group % 2 * 16, scales),
            AcrossWords<8>::load(row, begin + 64 + group / 4 * 16, scales),
            row.half_word(scales), row.half_word(begin + 104), group,
        };
    }
    static uint4 bytes_of(uint4 low, uint4 high, uint group) {
        return (low >> (group % 4 / 2 * 4) & LOWER) | (high >> (group % 4 * 2) & 0x03030303u) << 4;
    }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        const char4 scales = as_type<char4>(span.scales);
        const uint4 first = bytes_of(span.ql.four(0), span.qh.four(0), span.group);
        const uint4 second = bytes_of(span.ql.four(4), span.qh.four(4), span.group);
        const float of_first = x.factor * float(dot_half(first, x, 0)) - 32.0f * x.sums.x;
        const float of_second = x.factor * float(dot_half(second, x, 1)) - 32.0f * x.sums.y;
        return half_value(span.d) * (float(scales.x) * of_first + float(scales.y) * of_second);
    }
};
