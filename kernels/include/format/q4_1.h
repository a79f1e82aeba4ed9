// q4_1: nibbles as in q4_0, a scale and a minimum.
//
// Blocks of 20 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"
#include "include/format/span.h"

struct BlockQ4_1 {
    typedef block_q4_1 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = true;

    // d * q + m
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + 8 * (r % 2));
        const uint shift = 4 * (r / 2);
        return Run{ float4(byte_fields(bytes.x, shift, 15)), float4(byte_fields(bytes.y, shift, 15)), block->d, block->m };
    }
};

typedef FormatBlocks<BlockQ4_1> FormatQ4_1;

template <>
struct StagedSpan<FormatQ4_1> {
    static constant constexpr uint BYTES = sizeof(block_q4_1);
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
