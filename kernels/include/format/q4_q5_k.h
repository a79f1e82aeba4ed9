// q4_k and q5_k: super-blocks of 256 values in 8 groups of 32. Byte i of each 32 bytes of `qs` holds
// value i (low nibble) and value i + 32 (high nibble) of 64.
//
// Super-blocks of 144 and 176 bytes, 16-byte multiples, but a tensor may start at any multiple of 4:
// loads ask for 2 bytes of alignment only.
#pragma once

#include "include/format/blocks.h"

// The 6-bit scale (x) and minimum (y) of group g of 8, packed in 12 bytes: groups 0 to 3 in bytes g and
// g + 4; groups 4 to 7 have four bits of each in byte g + 4 and two in the top of bytes g - 4 and g.
inline float2 scale_and_min(device const uchar *scales, uint g) {
    const uint a = scales[g % 4];
    const uint b = scales[g % 4 + 4];
    const uint c = scales[g % 4 + 8];
    const uint2 first = uint2(a, b) & 63u;
    const uint2 second = uint2((c & 15) | (a >> 6 << 4), (c >> 4) | (b >> 6 << 4));
    return float2(g < 4 ? first : second);
}

// Where the nibbles of run r of 32 lie; its group is r / 4.
inline uint nibbles_at(uint r) { return r / 8 * 32 + r % 4 * 8; }
inline uint nibbles_shift(uint r) { return r / 4 % 2 * 4; }

struct BlockQ4K {
    typedef block_q4_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 4;
    static constant constexpr bool HAS_OFFSET = true;

    // d * scale * q - dmin * min
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + nibbles_at(r));
        const uint shift = nibbles_shift(r);
        const float2 sm = scale_and_min(block->scales, r / 4);
        return Run{
            float4(byte_fields(bytes.x, shift, 15)), float4(byte_fields(bytes.y, shift, 15)),
            float(block->d) * sm.x, -float(block->dmin) * sm.y,
        };
    }
};

struct BlockQ5K {
    typedef block_q5_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 4;
    static constant constexpr bool HAS_OFFSET = true;

    // As q4_k; bit g of byte i of `qh` is the fifth bit of value 32 g + i.
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + nibbles_at(r));
        const uint2 fifth = load_8_bytes(block->qh + r % 4 * 8);
        const uint shift = nibbles_shift(r);
        const uint4 low = byte_fields(bytes.x, shift, 15) | byte_fields(fifth.x, r / 4, 1) << 4;
        const uint4 high = byte_fields(bytes.y, shift, 15) | byte_fields(fifth.y, r / 4, 1) << 4;
        const float2 sm = scale_and_min(block->scales, r / 4);
        return Run{ float4(low), float4(high), float(block->d) * sm.x, -float(block->dmin) * sm.y };
    }
};

typedef FormatBlocks<BlockQ4K> FormatQ4K;
typedef FormatBlocks<BlockQ5K> FormatQ5K;
