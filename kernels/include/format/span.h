// A span: 32 consecutive values of a row, as the registers of one thread hold them before they are decoded.
//
// Runs (run.h) ask for 8 bytes at a time, and where blocks are aligned to 2 bytes only, a GPU without unaligned loads makes
// four loads of that. A span is loaded by whole words: `load` does nothing but loads, so that several spans can be under
// way at once, and `run` then decodes run 0 to 3 of it without a further load.
//
// Weights begin at a multiple of 16 bytes. Formats without a specialisation load run by run.
#pragma once

#include "include/format/all.h"

constant constexpr uint SPAN = 32;
constant constexpr uint SPAN_RUNS = SPAN / RUN;

// Bytes of a span, where spans of a row lie one behind the other and can be staged; 0 elsewhere.
template <typename F>
struct StagedSpan {
    static constant constexpr uint BYTES = 0;
};
template <>
struct StagedSpan<FormatQ4_0> {
    static constant constexpr uint BYTES = sizeof(block_q4_0);
};
template <>
struct StagedSpan<FormatQ4_1> {
    static constant constexpr uint BYTES = sizeof(block_q4_1);
};
template <>
struct StagedSpan<FormatQ5_0> {
    static constant constexpr uint BYTES = sizeof(block_q5_0);
};
template <>
struct StagedSpan<FormatQ8_0> {
    static constant constexpr uint BYTES = sizeof(block_q8_0);
};

template <typename F>
struct Spans {
    typedef typename F::Row Row;
    struct Span {
        Row row;
        uint first_run;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) { return F::row(weight, at, index); }
    static Span load(Row row, uint index) { return { row, SPAN_RUNS * index }; }
    static Run run(thread const Span &span, uint r) { return F::run(span.row, span.first_run + r); }
};

// Where the blocks of a row begin, in words that are aligned: in device memory, or in threadgroup memory.
struct BlockRow {
    device const uint *words;  // the word in which the first block begins
    uint odd;                  // whether it begins in that word's upper half

    // Half a word, counted from the first word's lower half.
    uint half_word(uint i) const { return ((device const ushort *)words)[i]; }
};

struct StagedRow {
    threadgroup const uint *words;
    uint odd;

    uint half_word(uint i) const { return ((threadgroup const ushort *)words)[i]; }
};

// The row of a format whose blocks have `bytes` bytes, a multiple of 2.
inline BlockRow block_row(device const uchar *weight, ulong first_block, uint bytes) {
    const ulong at = first_block * bytes;
    return { (device const uint *)(weight + (at & ~3ul)), uint(at / 2 & 1) };
}

// N words from byte `at` of a row on, a multiple of 2. Nothing beside them is read but the half of a word before them.
template <uint N>
struct Words {
    uint word[N];

    template <typename R>
    static Words<N> load(R row, uint at) {
        const uint begin = at + 2 * row.odd;
        const bool odd = begin % 4 != 0;
        const auto from = row.words + begin / 4;
        uint words[N + 1];
#pragma unroll
        for (uint i = 0; i < N; i++) {
            words[i] = from[i];
        }
        // The upper half of the last word where the words lie across; otherwise nothing new.
        words[N] = odd ? row.half_word(2 * (begin / 4 + N)) : 0;
        Words<N> out;
#pragma unroll
        for (uint i = 0; i < N; i++) {
            out.word[i] = odd ? words[i] >> 16 | words[i + 1] << 16 : words[i];
        }
        return out;
    }
};

// Two bytes of a row.
template <typename R>
inline uint half_word(R row, uint at) { return row.half_word(at / 2 + row.odd); }

inline float half_value(uint bits) { return float(as_type<half>(ushort(bits))); }

// Words 2 r and 2 r + 1 of a span of bytes.
template <uint N>
inline uint2 two_words(thread const Words<N> &words, uint r) {
    return uint2(words.word[2 * r], words.word[2 * r + 1]);
}

template <>
struct Spans<FormatQ4_0> {
    typedef BlockRow Row;
    struct Span {
        uint d;
        Words<4> qs;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / SPAN), sizeof(block_q4_0));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const uint at = index * sizeof(block_q4_0);
        return { half_word(row, at), Words<4>::load(row, at + 2) };
    }
    // As BlockQ4_0::run.
    static Run run(thread const Span &span, uint r) {
        const float d = half_value(span.d);
        const uint2 bytes = two_words(span.qs, r % 2) >> (4 * (r / 2));
        return Run{ one_and_sixteenths(bytes.x), one_and_sixteenths(bytes.y), 16.0f * d, -24.0f * d };
    }
};

template <>
struct Spans<FormatQ4_1> {
    typedef BlockRow Row;
    typedef Words<5> Span;

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / SPAN), sizeof(block_q4_1));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const auto block = row.words + index * (sizeof(block_q4_1) / 4);
        return { { block[0], block[1], block[2], block[3], block[4] } };
    }
    // d * q + m = 16 d * (1 + q / 16) + (m - 16 d); the difference is rounded, d * q + m would be too.
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = uint2(span.word[1 + 2 * (r % 2)], span.word[2 + 2 * (r % 2)]) >> (4 * (r / 2));
        const float d = half_value(span.word[0] & 0xffff);
        const float m = half_value(span.word[0] >> 16);
        return Run{ one_and_sixteenths(bytes.x), one_and_sixteenths(bytes.y), 16.0f * d, m - 16.0f * d };
    }
};

template <>
struct Spans<FormatQ5_0> {
    typedef BlockRow Row;
    struct Span {
        uint d;
        Words<5> bits;  // the fifth bits, then the nibbles
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / SPAN), sizeof(block_q5_0));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const uint at = index * sizeof(block_q5_0);
        return { half_word(row, at), Words<5>::load(row, at + 2) };
    }
    static Run run(thread const Span &span, uint r) {
        const float d = half_value(span.d);
        const uint2 bytes = uint2(span.bits.word[1 + 2 * (r % 2)], span.bits.word[2 + 2 * (r % 2)]) >> (4 * (r / 2));
        const uint fifth = span.bits.word[0] >> (8 * r);
        const uint4 low = byte_fields(bytes.x, 0, 15) | four_bits(fifth) << 4;
        const uint4 high = byte_fields(bytes.y, 0, 15) | four_bits(fifth >> 4) << 4;
        return Run{ float4(low), float4(high), d, -16.0f * d };
    }
};

template <>
struct Spans<FormatQ8_0> {
    typedef BlockRow Row;
    struct Span {
        uint d;
        Words<8> qs;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / SPAN), sizeof(block_q8_0));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const uint at = index * sizeof(block_q8_0);
        return { half_word(row, at), Words<8>::load(row, at + 2) };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = two_words(span.qs, r);
        return Run{ float4(as_type<char4>(bytes.x)), float4(as_type<char4>(bytes.y)), half_value(span.d), 0.0f };
    }
};

// 32 bytes at a multiple of 16.
struct Bytes32 {
    uint4 first;
    uint4 second;

    template <typename P>
    static Bytes32 load(P from) { return { from[0], from[1] }; }

    // Bytes 8 r to 8 r + 7.
    uint2 run(uint r) const {
        const uint4 words = r < 2 ? first : second;
        return r % 2 == 0 ? words.xy : words.zw;
    }
};

// The scale and the minimum of group g of q4_k and q5_k, of the first 16 bytes of a super-block: d, dmin and 12 bytes of
// scales (see scale_and_min).
inline float2 group_affine(uint4 head, uint g) {
    const uint shift = 8 * (g % 4);
    const uint a = head.y >> shift & 255;
    const uint b = head.z >> shift & 255;
    const uint c = head.w >> shift & 255;
    const uint scale = g < 4 ? a & 63 : (c & 15) | (a >> 6 << 4);
    const uint min = g < 4 ? b & 63 : (c >> 4) | (b >> 6 << 4);
    return float2(half_value(head.x & 0xffff) * float(scale), -half_value(head.x >> 16) * float(min));
}

template <>
struct Spans<FormatQ4K> {
    typedef device const uint4 *Row;
    struct Span {
        uint4 head;
        Bytes32 qs;
        uint group;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return (Row)(weight + ulong(index) * (at.row_len / 256) * sizeof(block_q4_k));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const R block = row + index / 8 * (sizeof(block_q4_k) / 16);
        const uint group = index % 8;
        return { block[0], Bytes32::load(block + 1 + group / 2 * 2), group };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = span.qs.run(r) >> (span.group % 2 * 4);
        const float2 affine = group_affine(span.head, span.group);
        // 16 s * (1 + q / 16) + (m - 16 s)
        const float scale = 16.0f * affine.x;
        return Run{ one_and_sixteenths(bytes.x), one_and_sixteenths(bytes.y), scale, affine.y - scale };
    }
};

template <>
struct Spans<FormatQ5K> {
    typedef device const uint4 *Row;
    struct Span {
        uint4 head;
        Bytes32 qh;
        Bytes32 qs;
        uint group;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return (Row)(weight + ulong(index) * (at.row_len / 256) * sizeof(block_q5_k));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const R block = row + index / 8 * (sizeof(block_q5_k) / 16);
        const uint group = index % 8;
        return { block[0], Bytes32::load(block + 1), Bytes32::load(block + 3 + group / 2 * 2), group };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = span.qs.run(r) >> (span.group % 2 * 4);
        const uint2 fifth = span.qh.run(r) >> span.group;
        const float2 affine = group_affine(span.head, span.group);
        const uint4 low = byte_fields(bytes.x, 0, 15) | byte_fields(fifth.x, 0, 1) << 4;
        const uint4 high = byte_fields(bytes.y, 0, 15) | byte_fields(fifth.y, 0, 1) << 4;
        return Run{ float4(low), float4(high), affine.x, affine.y };
    }
};

template <>
struct Spans<FormatQ6K> {
    typedef BlockRow Row;
    struct Span {
        Words<8> ql;
        Words<8> qh;
        uint scales;  // two of 8 bits
        uint d;
        uint group;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / 256), sizeof(block_q6_k));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const uint group = index % 8;
        const uint at = index / 8 * sizeof(block_q6_k);
        return {
            Words<8>::load(row, at + group / 4 * 64 + group % 2 * 32), Words<8>::load(row, at + 128 + group / 4 * 32),
            half_word(row, at + 192 + 2 * group), half_word(row, at + 208), group,
        };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 lower = two_words(span.ql, r) >> (span.group % 4 / 2 * 4);
        const uint2 upper = two_words(span.qh, r) >> (span.group % 4 * 2);
        const uint4 low = byte_fields(lower.x, 0, 15) | byte_fields(upper.x, 0, 3) << 4;
        const uint4 high = byte_fields(lower.y, 0, 15) | byte_fields(upper.y, 0, 3) << 4;
        const float scale = float(as_type<char4>(span.scales)[r / 2]);
        const float d = half_value(span.d) * scale;
        return Run{ float4(low), float4(high), d, -32.0f * d };
    }
};

// Plain numbers of one type: how many vectors of 16 bytes a run has, and its values.
template <typename T>
struct PlainBits;

template <>
struct PlainBits<half> {
    static constant constexpr uint VECTORS = 1;
    static float4 low(thread const uint4 *bits) { return float4(as_type<half4>(bits[0].xy)); }
    static float4 high(thread const uint4 *bits) { return float4(as_type<half4>(bits[0].zw)); }
};

template <>
struct PlainBits<ushort> {
    static constant constexpr uint VECTORS = 1;
    static float4 low(thread const uint4 *bits) { return as_type<float4>(uint4(as_type<ushort4>(bits[0].xy)) << 16); }
    static float4 high(thread const uint4 *bits) { return as_type<float4>(uint4(as_type<ushort4>(bits[0].zw)) << 16); }
};

template <>
struct PlainBits<float> {
    static constant constexpr uint VECTORS = 2;
    static float4 low(thread const uint4 *bits) { return as_type<float4>(bits[0]); }
    static float4 high(thread const uint4 *bits) { return as_type<float4>(bits[1]); }
};

// 32 plain numbers, by 16 bytes where rows are whole vectors of 8 numbers.
template <typename T>
struct Spans<FormatPlain<T>> {
    static constant constexpr uint VECTORS = PlainBits<T>::VECTORS * SPAN_RUNS;
    struct Row {
        device const T *first;
        bool is_aligned;
    };
    struct Span {
        uint4 bits[VECTORS];
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return { (device const T *)weight + ulong(index) * at.row_len, at.row_len % 8 == 0 };
    }
    static Span load(Row row, uint index) {
        Span span;
        device const T *from = row.first + SPAN * index;
#pragma unroll
        for (uint i = 0; i < VECTORS; i++) {
            if (row.is_aligned) {
                span.bits[i] = ((device const uint4 *)from)[i];
            } else {
                device const packed_ushort4 *p = (device const packed_ushort4 *)((device const ushort *)from + 8 * i);
                span.bits[i] = uint4(as_type<uint2>(ushort4(p[0])), as_type<uint2>(ushort4(p[1])));
            }
        }
        return span;
    }
    static Run run(thread const Span &span, uint r) {
        thread const uint4 *bits = span.bits + PlainBits<T>::VECTORS * r;
        return Run{ PlainBits<T>::low(bits), PlainBits<T>::high(bits), 1.0f, 0.0f };
    }
};
