// iq1_m: super-blocks of 16 groups of 16; eight numbers -1, 0 or 1 are a point of a grid of 2048, and an eighth is added to them or
// subtracted. A quarter of the super-block's f16 stands in the highest bits of each 16 bits of scales.
//
// Super-blocks of 56 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/grid.h"

struct BlockIQ1M {
    typedef block_iq1_m Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (1 + 2 * scale) * (number ± 1/8): the table has eight times the sum, for both signs
    static Run run(device const Block *block, uint r) {
        const uint nibble = uint(block->qh[r / 2]) >> (r % 2 * 4);
        const uint place = uint(block->qs[r]) | (nibble & 7) << 8;
        const uint scale = uint(block->scales[r / 8]) >> (r % 8 / 2 * 3) & 7;
        device const uint16_t *quarters = block->scales;
        const uint bits = uint(quarters[0]) >> 12 | (uint(quarters[1]) >> 8 & 0xf0) | (uint(quarters[2]) >> 4 & 0xf00) |
                          (uint(quarters[3]) & 0xf000);
        const float d = half_value(bits) * (0.125f * float(1 + 2 * scale));
        const uint minus = (nibble >> 3 & 1) * 0x08080808u;
        return run_of_codes(IQ1_M_NUMBERS, eight_levels(IQ1_GRID[place]) | minus, d);
    }
};

typedef FormatBlocks<BlockIQ1M> FormatIQ1M;
