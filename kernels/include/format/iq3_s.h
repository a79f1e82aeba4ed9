// iq3_s: super-blocks of 8 groups of 32; four magnitudes are a point of a grid of 512, and each value has a sign.
//
// Super-blocks of 110 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/grid.h"

struct BlockIQ3S {
    typedef block_iq3_s Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (1 + 2 * scale) * number
    static Run run(device const Block *block, uint r) {
        const uint group = r / 4;
        const uint high = uint(block->qh[group]) >> (r % 4 * 2);
        const uint first = uint(block->qs[2 * r]) | (high & 1) << 8;
        const uint second = uint(block->qs[2 * r + 1]) | (high & 2) << 7;
        const uint2 levels = uint2(four_levels(IQ3_S_GRID[first]), four_levels(IQ3_S_GRID[second]));
        const uint scale = uint(block->scales[group / 2]) >> (group % 2 * 4) & 15;
        const float d = float(block->d) * float(1 + 2 * scale);
        return run_of_codes(IQ3_S_NUMBERS, levels | eight_signs(block->signs[r]), d);
    }
};

typedef FormatBlocks<BlockIQ3S> FormatIQ3S;
