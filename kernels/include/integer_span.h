// What a lane multiplies at once, as bytes, for products in whole numbers: 32 weights of a row.
//
// They are bytes q with scales and offsets, value = scale * q + offset: a span (format/span.h) where a block has 32 weights.
// Of a super-block they are a slice, the weights whose bits lie in the same bytes: 16 of each of two spans, or 8 of each of four,
// so that the eight lanes of a super-block load each byte once. x is spans of whole numbers v of 16 bits with one factor,
// v = 256 * high + low, and dot4 multiplies four bytes by four bytes at once:
//
//     sum(value * x) = scale * factor * (256 * sum(q * high) + sum(q * low)) + offset * factor * sum(v)
//
// Of x, 16 bits are kept: its largest value of a span has 15 and a sign. What is added up in whole numbers is exact.
//
// Upper nibbles stay where they are, and count sixteen times: a mask instead of a shift and a mask.
#pragma once

#include <akunu_tensor>

#include "include/format/all.h"

// Vectors of 16 bytes of a span of x in threadgroup memory: high bytes, low bytes, and the factor and the sums of both halves;
// those of 8 lanes fall into different banks.
constant constexpr uint X_VECTORS = 5;
// Lanes that share a super-block.
constant constexpr uint SLICES = 8;

// 16 of the values of x of a span, and the sum of factor * v.
struct HalfX {
    uint4 high;
    uint4 low;
    float factor;
    float sum;

    static HalfX load(threadgroup const uint4 *span, uint h) {
        threadgroup const float *rest = (threadgroup const float *)(span + 4);
        return { span[h], span[2 + h], rest[0], rest[1 + h] };
    }
};

// A span of x.
struct IntegerX {
    uint4 high[2];
    uint4 low[2];
    float factor;
    float2 sums;  // of factor * v, by half

    static IntegerX load(threadgroup const uint4 *stage, uint index, uint) {
        threadgroup const uint4 *span = stage + index * X_VECTORS;
        const float4 rest = as_type<float4>(span[4]);
        return { { span[0], span[1] }, { span[2], span[3] }, rest.x, rest.yz };
    }
};

// Half `slice % 2` of two spans of a super-block.
struct PairX {
    HalfX first;
    HalfX second;

    static PairX load(threadgroup const uint4 *stage, uint index, uint slice) {
        threadgroup const uint4 *span = stage + (index / SLICES * SLICES + slice / 2 * 2) * X_VECTORS;
        return { HalfX::load(span, slice % 2), HalfX::load(span + X_VECTORS, slice % 2) };
    }
};

// Quarter `slice % 4` of the four spans of a half of a super-block.
struct QuarterX {
    uint2 high[4];
    uint2 low[4];
    float factor[4];

    static QuarterX load(threadgroup const uint4 *stage, uint index, uint slice) {
        threadgroup const uint4 *span = stage + (index / SLICES * SLICES + slice / 4 * 4) * X_VECTORS;
        QuarterX out;
#pragma unroll
        for (uint i = 0; i < 4; i++, span += X_VECTORS) {
            out.high[i] = ((threadgroup const uint2 *)span)[slice % 4];
            out.low[i] = ((threadgroup const uint2 *)span)[4 + slice % 4];
            out.factor[i] = ((threadgroup const float *)span)[16];
        }
        return out;
    }
};

// The weights that a lane loads, and the x that belongs to them: `load` does nothing but loads, `dot` does the rest.
template <typename F>
struct ByteSpans {
    static constant constexpr bool EXIST = false;
};

constant constexpr uint LOWER = 0x0f0f0f0fu;
constant constexpr uint UPPER = 0xf0f0f0f0u;

// sum(q * v) of 16 bytes of each, q from 0 to 255.
inline int dot_half(uint4 q, uint4 high, uint4 low) {
    int of_high = 0;
    int of_low = 0;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        of_high = nvidia::dot4_unsigned(q[i], high[i], of_high);
        of_low = nvidia::dot4_unsigned(q[i], low[i], of_low);
    }
    return of_high * 256 + of_low;
}

inline int dot_half(uint4 q, thread const HalfX &x) { return dot_half(q, x.high, x.low); }

// The same of 32 bytes.
inline int dot_whole(uint4 first, uint4 second, thread const IntegerX &x) {
    return dot_half(first, x.high[0], x.low[0]) + dot_half(second, x.high[1], x.low[1]);
}

// 16 * sum(q * v) of nibbles, the lower ones for the first half.
inline int dot_nibbles(uint4 bytes, thread const IntegerX &x) {
    return 16 * dot_half(bytes & LOWER, x.high[0], x.low[0]) + dot_half(bytes & UPPER, x.high[1], x.low[1]);
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
    typedef IntegerX X;
    typedef ScaledBlock<4> Span;

    static Span load(BlockRow row, uint index, uint) { return Span::load(row, index); }
    static float dot(thread const Span &span, thread const IntegerX &x) {
        return span.scale() * (x.factor / 16.0f * float(dot_nibbles(span.words.four(0), x)) - 8.0f * sum_of(x));
    }
};

template <>
struct ByteSpans<FormatQ4_1> {
    static constant constexpr bool EXIST = true;
    typedef IntegerX X;
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
    typedef IntegerX X;
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
    typedef IntegerX X;
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

// By spans: decoding the scales and offsets of two groups takes longer than loading bytes twice.
template <>
struct ByteSpans<FormatQ4K> {
    static constant constexpr bool EXIST = true;
    typedef IntegerX X;
    struct Span {
        uint4 head;
        Bytes32 qs;
        uint group;
    };

    static Span load(device const uint4 *row, uint index, uint group) {
        device const uint4 *block = row + index / SLICES * (sizeof(block_q4_k) / 16);
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

// 16 bytes of nibbles of a super-block with scales and offsets: the lower ones are of the first span, the upper ones of the second.
// The fifth bit of a weight of span g is bit g of a byte.
template <>
struct ByteSpans<FormatQ5K> {
    static constant constexpr bool EXIST = true;
    typedef PairX X;
    struct Span {
        uint4 head;
        uint4 qh;
        uint4 qs;
        uint first_group;
    };

    static Span load(device const uint4 *row, uint index, uint slice) {
        device const uint4 *block = row + index / SLICES * (sizeof(block_q5_k) / 16);
        return { block[0], block[1 + slice % 2], block[3 + slice], slice / 2 * 2 };
    }
    static float dot(thread const Span &span, thread const PairX &x) {
        const float2 first = group_affine(span.head, span.first_group);
        const float2 second = group_affine(span.head, span.first_group + 1);
        const uint4 fifth = span.qh >> span.first_group;
        const uint4 lower = (span.qs & LOWER) | (fifth & 0x01010101u) << 4;
        const uint4 upper = (span.qs >> 4 & LOWER) | (fifth & 0x02020202u) << 3;
        const float of_first = x.first.factor * float(dot_half(lower, x.first));
        const float of_second = x.second.factor * float(dot_half(upper, x.second));
        return first.x * of_first + first.y * x.first.sum + second.x * of_second + second.y * x.second.sum;
    }
};

// Of a half of a super-block, 8 bytes of qh with two bits of each of four spans, and the 8 + 8 bytes with their nibbles.
template <>
struct ByteSpans<FormatQ6K> {
    static constant constexpr bool EXIST = true;
    typedef QuarterX X;
    struct Span {
        AcrossWords<2> first;   // lower nibbles: span 0, upper: span 2
        AcrossWords<2> second;  // span 1, span 3
        AcrossWords<2> qh;
        AcrossWords<2> scales;  // of 8 bits, two for each span
        uint d;
        uint odd_scales;
    };

    // The half words of a super-block: 64 of ql, 32 of qh, 8 of scales and the factor of all.
    static Span load(BlockRow row, uint index, uint slice) {
        const uint begin = index / SLICES * (sizeof(block_q6_k) / 2) + row.odd;
        const uint h = slice / 4;
        const uint at = slice % 4 * 4;
        const uint d = begin + 104;
        return {
            AcrossWords<2>::load(row, begin + h * 32 + at, d),
            AcrossWords<2>::load(row, begin + h * 32 + 16 + at, d),
            AcrossWords<2>::load(row, begin + 64 + h * 16 + at, d),
            AcrossWords<2>::load(row, begin + 96 + h * 4, d),
            row.half_word(d), at / 8,
        };
    }
    // sum((q - 32) * v) of 8 weights, from words of bytes q: q + 96 with the highest bit turned is the byte q - 32.
    static int dot_quarter(uint q_0, uint q_1, thread const QuarterX &x, uint span) {
        const uint2 bytes = (uint2(q_0, q_1) + 0x60606060u) ^ 0x80808080u;
        int of_high = nvidia::dot4(bytes.x, x.high[span].x, 0);
        int of_low = nvidia::dot4(bytes.x, x.low[span].x, 0);
        of_high = nvidia::dot4(bytes.y, x.high[span].y, of_high);
        of_low = nvidia::dot4(bytes.y, x.low[span].y, of_low);
        return of_high * 256 + of_low;
    }
    static uint bytes_of(uint nibbles, uint qh, uint span) {
        const uint upper = span < 2 ? qh << (4 - 2 * span) : qh >> (2 * span - 4);
        return (nibbles >> (span / 2 * 4) & LOWER) | (upper & 0x30303030u);
    }
    // A product with a scale stays below 2^31: 8 * 32 * 32512 * 128.
    static float dot(thread const Span &span, thread const QuarterX &x) {
        float sum = 0.0f;
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            const uint q_0 = bytes_of(i % 2 == 0 ? span.first[0] : span.second[0], span.qh[0], i);
            const uint q_1 = bytes_of(i % 2 == 0 ? span.first[1] : span.second[1], span.qh[1], i);
            const uint scale = span.scales[i / 2] >> (i % 2 * 16 + span.odd_scales * 8);
            sum += x.factor[i] * float(dot_quarter(q_0, q_1, x, i) * int(as_type<char4>(scale).x));
        }
        return half_value(span.d) * sum;
    }
};
