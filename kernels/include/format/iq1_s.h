// iq1_s: super-blocks of 8 groups of 32; eight numbers -1, 0 or 1 are a point of a grid of 2048, and an eighth is added to them or
// subtracted.
//
// Super-blocks of 50 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/grid.h"

struct BlockIQ1S {
    typedef block_iq1_s Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (1 + 2 * scale) * (number ± 1/8): the table has eight times the sum, for both signs
    static Run run(device const Block *block, uint r) {
        const uint high = block->qh[r / 4];
        const uint place = uint(block->qs[r]) | (high >> (r % 4 * 3) & 7) << 8;
        const float d = float(block->d) * (0.125f * float(1 + 2 * (high >> 12 & 7)));
        const uint minus = (high >> 15) * 0x08080808u;
        return run_of_codes(IQ1_S_NUMBERS, eight_levels(IQ1_GRID[place]) | minus, d);
    }
};

typedef FormatBlocks<BlockIQ1S> FormatIQ1S;
