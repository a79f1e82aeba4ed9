// q3_k: super-blocks of 256 values in 16 groups of 16: two bits (two_bits.h), and a third one in `hmask`.
//
// Super-blocks of 110 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/two_bits.h"

struct BlockQ3K {
    typedef block_q3_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 4;
    static constant constexpr bool HAS_OFFSET = true;

    // The 6-bit scale of group g: four bits in bytes 0 to 7, two in bytes 8 to 11.
    static uint scale(device const Block *block, uint g) {
        const uint low = uint(block->scales[g % 8]) >> (g / 8 * 4) & 15;
        const uint high = uint(block->scales[8 + g % 4]) >> (g / 4 * 2) & 3;
        return low | high << 4;
    }

    // d * (scale - 32) * (q - 4); bit k of byte i of `hmask` is the third bit of value 32 k + i.
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + two_bits_at(r));
        const uint2 third = load_8_bytes(block->hmask + r % 4 * 8);
        const uint shift = two_bits_shift(r);
        const uint4 low = byte_fields(bytes.x, shift, 3) | byte_fields(third.x, r / 4, 1) << 2;
        const uint4 high = byte_fields(bytes.y, shift, 3) | byte_fields(third.y, r / 4, 1) << 2;
        const float d = float(block->d) * (float(scale(block, r / 2)) - 32.0f);
        return Run{ float4(low), float4(high), d, -4.0f * d };
    }
};

typedef FormatBlocks<BlockQ3K> FormatQ3K;
