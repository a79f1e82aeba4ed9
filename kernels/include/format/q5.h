// q5_0 and q5_1: nibbles as in q4_0; bit j of `qh` is the fifth bit of value j.
//
// Blocks of 22 and 24 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"

// Run r of 16 bytes of nibbles, r = 0 to 3; its fifth bits are byte r of `qh`.
inline Run five_bit_run(device const uchar *qs, device const uchar *qh, uint r, float2 affine) {
    const uint2 bytes = load_8_bytes(qs + 8 * (r % 2));
    const uint shift = 4 * (r / 2);
    const uint fifth = qh[r];
    const uint4 low = byte_fields(bytes.x, shift, 15) | four_bits(fifth) << 4;
    const uint4 high = byte_fields(bytes.y, shift, 15) | four_bits(fifth >> 4) << 4;
    return Run{ float4(low), float4(high), affine.x, affine.y };
}

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

struct BlockQ5_1 {
    typedef block_q5_1 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = true;

    // d * q + m
    static Run run(device const Block *block, uint r) {
        return five_bit_run(block->qs, block->qh, r, float2(block->d, block->m));
    }
};

typedef FormatBlocks<BlockQ5_0> FormatQ5_0;
typedef FormatBlocks<BlockQ5_1> FormatQ5_1;
