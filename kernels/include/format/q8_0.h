// q8_0: 32 signed bytes and a scale. Blocks of 34 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"
#include "include/format/span.h"

struct BlockQ8_0 {
    typedef block_q8_0 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * q
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes((device const uchar *)block->qs + 8 * r);
        return Run{ float4(as_type<char4>(bytes.x)), float4(as_type<char4>(bytes.y)), block->d, 0.0f };
    }
};

typedef FormatBlocks<BlockQ8_0> FormatQ8_0;

template <>
struct StagedSpan<FormatQ8_0> {
    static constant constexpr uint BYTES = sizeof(block_q8_0);
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
