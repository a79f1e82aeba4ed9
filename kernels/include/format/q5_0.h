// q5_0: 32 codes of five bits (five_bits.h) and a scale.
//
// Blocks of 22 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/five_bits.h"
#include "include/format/span.h"

struct BlockQ5_0 {
    typedef block_q5_0 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = true;

    // d * (q - 16)
    static Run run(device const Block *block, uint r) {
        const float d = block->d;
        return five_bit_run(block->qs, block->qh, r, float2(d, -16.0f * d));
    }
};

typedef FormatBlocks<BlockQ5_0> FormatQ5_0;

template <>
struct StagedSpan<FormatQ5_0> {
    static constant constexpr uint BYTES = sizeof(block_q5_0);
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
