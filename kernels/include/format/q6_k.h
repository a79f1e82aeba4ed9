// q6_k: super-blocks of 256 values in 16 groups of 16. Each half of 128 has 64 bytes of nibbles (value
// i low, value i + 64 high) and 32 bytes of upper bits (values i, i + 32, i + 64, i + 96).
//
// Super-blocks of 210 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"

struct BlockQ6K {
    typedef block_q6_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 8;
    static constant constexpr bool HAS_OFFSET = true;

    // d * scale * (q - 32)
    static Run run(device const Block *block, uint r) {
        const uint half_index = r / 16;
        const uint i = r % 16;
        const uint2 lower = load_8_bytes(block->ql + half_index * 64 + i % 8 * 8);
        const uint2 upper = load_8_bytes(block->qh + half_index * 32 + i % 4 * 8);
        const uint shift = i / 8 * 4;
        const uint upper_shift = i / 4 * 2;
        const uint4 low = byte_fields(lower.x, shift, 15) | byte_fields(upper.x, upper_shift, 3) << 4;
        const uint4 high = byte_fields(lower.y, shift, 15) | byte_fields(upper.y, upper_shift, 3) << 4;
        const float d = float(block->d) * float(block->scales[r / 2]);
        return Run{ float4(low), float4(high), d, -32.0f * d };
    }
};

typedef FormatBlocks<BlockQ6K> FormatQ6K;
