// q4_0 and q4_1: 32 values; byte j of `qs` holds value j (low nibble) and value j + 16 (high nibble).
//
// Blocks of 18 and 20 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"

// Run r of 16 bytes of nibbles, r = 0 to 3.
inline Run nibble_run(device const uchar *qs, uint r, float scale, float offset) {
    const uint2 bytes = load_8_bytes(qs + 8 * (r % 2));
    const uint shift = 4 * (r / 2);
    return Run{ float4(byte_fields(bytes.x, shift, 15)), float4(byte_fields(bytes.y, shift, 15)), scale, offset };
}

struct BlockQ4_0 {
    typedef block_q4_0 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = true;

    // d * (q - 8) = 16 d * (1 + q / 16) - 24 d, exactly: each of these numbers has few bits.
    static Run run(device const Block *block, uint r) {
        const float d = block->d;
        const uint2 bytes = load_8_bytes(block->qs + 8 * (r % 2)) >> (4 * (r / 2));
        return Run{ one_and_sixteenths(bytes.x), one_and_sixteenths(bytes.y), 16.0f * d, -24.0f * d };
    }
};

struct BlockQ4_1 {
    typedef block_q4_1 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = true;

    // d * q + m
    static Run run(device const Block *block, uint r) {
        return nibble_run(block->qs, r, block->d, block->m);
    }
};

typedef FormatBlocks<BlockQ4_0> FormatQ4_0;
typedef FormatBlocks<BlockQ4_1> FormatQ4_1;
