// q5_1: 32 codes of five bits (five_bits.h), a scale and a minimum.
//
// Blocks of 24 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/five_bits.h"

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

typedef FormatBlocks<BlockQ5_1> FormatQ5_1;
