// iq2_s: super-blocks of 16 groups of 16; eight magnitudes are a point of a grid of 1024, and each value has a sign.
//
// Super-blocks of 82 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/grid.h"

struct BlockIQ2S {
    typedef block_iq2_s Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (1 + 2 * scale) * number / 8
    static Run run(device const Block *block, uint r) {
        const uint place = uint(block->qs[r]) | (uint(block->qh[r / 4]) >> (r % 4 * 2) & 3) << 8;
        const uint scale = uint(block->scales[r / 4]) >> (r % 4 / 2 * 4) & 15;
        const float d = float(block->d) * (0.125f * float(1 + 2 * scale));
        return run_of_codes(IQ2_S_NUMBERS, eight_levels(IQ2_S_GRID[place]) | eight_signs(block->signs[r]), d);
    }
};

typedef FormatBlocks<BlockIQ2S> FormatIQ2S;
