// q8_0: 32 signed bytes and a scale. Blocks of 34 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"

struct BlockQ8_0 {
    typedef block_q8_0 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    // d * q
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes((device const uchar *)block->qs + 8 * r);
        return Run{ float4(as_type<char4>(bytes.x)), float4(as_type<char4>(bytes.y)), block->d, 0.0f };
    }
};

typedef FormatBlocks<BlockQ8_0> FormatQ8_0;
