// iq2_xxs: super-blocks of 8 groups of 32; eight magnitudes are a point of a grid of 256, and seven bits are their signs.
//
// Super-blocks of 66 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/grid.h"

struct BlockIQ2XXS {
    typedef block_iq2_xxs Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (1 + 2 * scale) * number / 8
    static Run run(device const Block *block, uint r) {
        device const uint16_t *group = block->qs + r / 4 * 4;
        const uint place = uint(group[r % 4 / 2]) >> (r % 2 * 8) & 0xff;
        const uint both = two_words(group + 2);
        const float d = float(block->d) * (0.125f * float(1 + 2 * (both >> 28)));
        const uint2 signs = eight_signs(even_signs(both >> (r % 4 * 7)));
        return run_of_codes(IQ2_XXS_NUMBERS, eight_levels(IQ2_XXS_GRID[place]) | signs, d);
    }
};

typedef FormatBlocks<BlockIQ2XXS> FormatIQ2XXS;
