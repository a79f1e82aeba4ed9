// Spans (format/span.h) as bytes, for products in whole numbers.
//
// 32 weights are two halves of 16 bytes q, each half with a scale and an offset: value = scale * q + offset. x is a span of
// whole numbers v of 16 bits with one factor, v = 256 * high + low, and dot4 multiplies four bytes by four bytes at once:
//
//     sum(value * x) = factor * (scale * (256 * sum(q * high) + sum(q * low)) + offset * sum(v))
//
// Of x, 16 bits are kept: its largest value of a span has 15 and a sign. Everything else is exact but for the last sum.
#pragma once

#include <akunu_tensor>

#include "include/format/span.h"

// A span of x in threadgroup memory.
struct IntegerX {
    uint4 high[2];
    uint4 low[2];
    float factor;
    float sums[2];  // of v, by half
};

// A span of weights.
struct ByteSpan {
    uint4 q[2];
    float scale[2];
    float offset[2];
};

// Whether a format has byte spans; a specialisation makes them.
template <typename F>
struct ByteSpans {
    static constant constexpr bool EXIST = false;
};

inline ByteSpan byte_span(uint4 first, uint4 second, float scale, float offset) {
    return { { first, second }, { scale, scale }, { offset, offset } };
}

inline uint4 nibbles(uint4 bytes, uint shift) { return bytes >> shift & 0x0f0f0f0fu; }
// Bits 0 to 3, each as the fifth bit of a byte.
inline uint fifth_bits(uint bits) { return ((bits & 15) * 0x00204081u & 0x01010101u) << 4; }

template <uint N>
inline uint4 four_words(thread const Words<N> &words, uint first) {
    return uint4(words.word[first], words.word[first + 1], words.word[first + 2], words.word[first + 3]);
}

template <>
struct ByteSpans<FormatQ4_0> {
    static constant constexpr bool EXIST = true;
    static ByteSpan of(thread const Spans<FormatQ4_0>::Span &span) {
        const uint4 bytes = four_words(span.qs, 0);
        const float d = half_value(span.d);
        return byte_span(nibbles(bytes, 0), nibbles(bytes, 4), d, -8.0f * d);
    }
};

template <>
struct ByteSpans<FormatQ4_1> {
    static constant constexpr bool EXIST = true;
    static ByteSpan of(thread const Spans<FormatQ4_1>::Span &span) {
        const uint4 bytes = four_words(span, 1);
        const float d = half_value(span.word[0] & 0xffff);
        return byte_span(nibbles(bytes, 0), nibbles(bytes, 4), d, half_value(span.word[0] >> 16));
    }
};

template <>
struct ByteSpans<FormatQ5_0> {
    static constant constexpr bool EXIST = true;
    static ByteSpan of(thread const Spans<FormatQ5_0>::Span &span) {
        const uint4 bytes = four_words(span.bits, 1);
        const uint bits = span.bits.word[0];
        const uint4 first = uint4(fifth_bits(bits), fifth_bits(bits >> 4), fifth_bits(bits >> 8), fifth_bits(bits >> 12));
        const uint4 second =
            uint4(fifth_bits(bits >> 16), fifth_bits(bits >> 20), fifth_bits(bits >> 24), fifth_bits(bits >> 28));
        const float d = half_value(span.d);
        return byte_span(nibbles(bytes, 0) | first, nibbles(bytes, 4) | second, d, -16.0f * d);
    }
};

template <>
struct ByteSpans<FormatQ8_0> {
    static constant constexpr bool EXIST = true;
    static ByteSpan of(thread const Spans<FormatQ8_0>::Span &span) {
        return byte_span(four_words(span.qs, 0), four_words(span.qs, 4), half_value(span.d), 0.0f);
    }
};

template <>
struct ByteSpans<FormatQ4K> {
    static constant constexpr bool EXIST = true;
    static ByteSpan of(thread const Spans<FormatQ4K>::Span &span) {
        const uint shift = span.group % 2 * 4;
        const float2 affine = group_affine(span.head, span.group);
        return byte_span(nibbles(span.qs.first, shift), nibbles(span.qs.second, shift), affine.x, affine.y);
    }
};

template <>
struct ByteSpans<FormatQ5K> {
    static constant constexpr bool EXIST = true;
    static uint4 bytes_of(uint4 low, uint4 fifth, uint group) {
        return nibbles(low, group % 2 * 4) | (fifth >> group & 0x01010101u) << 4;
    }
    static ByteSpan of(thread const Spans<FormatQ5K>::Span &span) {
        const float2 affine = group_affine(span.head, span.group);
        const uint4 first = bytes_of(span.qs.first, span.qh.first, span.group);
        return byte_span(first, bytes_of(span.qs.second, span.qh.second, span.group), affine.x, affine.y);
    }
};

template <>
struct ByteSpans<FormatQ6K> {
    static constant constexpr bool EXIST = true;
    static uint4 bytes_of(uint4 low, uint4 high, uint group) {
        return nibbles(low, group % 4 / 2 * 4) | (high >> (group % 4 * 2) & 0x03030303u) << 4;
    }
    static ByteSpan of(thread const Spans<FormatQ6K>::Span &span) {
        const char4 scales = as_type<char4>(span.scales);
        const float d = half_value(span.d);
        const float first = d * float(scales.x);
        const float second = d * float(scales.y);
        return {
            { bytes_of(four_words(span.ql, 0), four_words(span.qh, 0), span.group),
              bytes_of(four_words(span.ql, 4), four_words(span.qh, 4), span.group) },
            { first, second },
            { -32.0f * first, -32.0f * second },
        };
    }
};

// sum(q * v) of 16 bytes of each.
inline float dot_half(uint4 q, uint4 high, uint4 low) {
    int of_high = 0;
    int of_low = 0;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        of_high = nvidia::dot4(q[i], high[i], of_high);
        of_low = nvidia::dot4(q[i], low[i], of_low);
    }
    return float(of_high * 256 + of_low);
}

// The sum of a span's weights times x.
inline float dot_bytes(thread const ByteSpan &w, thread const IntegerX &x) {
    float sum = 0.0f;
#pragma unroll
    for (uint h = 0; h < 2; h++) {
        sum += w.scale[h] * dot_half(w.q[h], x.high[h], x.low[h]) + w.offset[h] * x.sums[h];
    }
    return x.factor * sum;
}
