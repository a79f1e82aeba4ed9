// q2_k: super-blocks of 256 values in 16 groups of 16, two bits each (two_bits.h).
//
// Super-blocks of 84 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/two_bits.h"

struct BlockQ2K {
    typedef block_q2_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 4;
    static constant constexpr bool HAS_OFFSET = true;

    // d * (scale & 15) * q - dmin * (scale >> 4)
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + two_bits_at(r));
        const uint shift = two_bits_shift(r);
        const uint scale = block->scales[r / 2];
        return Run{
            float4(byte_fields(bytes.x, shift, 3)), float4(byte_fields(bytes.y, shift, 3)),
            float(block->d) * float(scale & 15), -float(block->dmin) * float(scale >> 4),
        };
    }
};

typedef FormatBlocks<BlockQ2K> FormatQ2K;
