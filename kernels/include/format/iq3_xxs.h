// iq3_xxs: super-blocks of 8 groups of 32; four magnitudes are a point of a grid of 256, and seven bits are eight signs.
//
// Super-blocks of 98 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/grid.h"

struct BlockIQ3XXS {
    typedef block_iq3_xxs Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (1 + 2 * scale) * number / 4
    static Run run(device const Block *block, uint r) {
        const uint both = two_words(block->signs_and_scale + r / 4 * 2);
        const uint2 levels = uint2(four_levels(IQ3_XXS_GRID[block->qs[2 * r]]),
                                   four_levels(IQ3_XXS_GRID[block->qs[2 * r + 1]]));
        const float d = float(block->d) * (0.25f * float(1 + 2 * (both >> 28)));
        return run_of_codes(IQ3_XXS_NUMBERS, levels | eight_signs(even_signs(both >> (r % 4 * 7))), d);
    }
};

typedef FormatBlocks<BlockIQ3XXS> FormatIQ3XXS;
