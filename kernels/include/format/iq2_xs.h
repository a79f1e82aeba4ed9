// iq2_xs: super-blocks of 16 groups of 16; eight magnitudes are a point of a grid of 512, with seven bits for their signs.
//
// Super-blocks of 74 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/grid.h"

struct BlockIQ2XS {
    typedef block_iq2_xs Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (1 + 2 * scale) * number / 8
    static Run run(device const Block *block, uint r) {
        const uint both = block->qs[r];
        const uint scale = uint(block->scales[r / 4]) >> (r % 4 / 2 * 4) & 15;
        const float d = float(block->d) * (0.125f * float(1 + 2 * scale));
        return run_of_codes(IQ2_XS_NUMBERS, eight_levels(IQ2_XS_GRID[both & 511]) | eight_signs(even_signs(both >> 9)), d);
    }
};

typedef FormatBlocks<BlockIQ2XS> FormatIQ2XS;
