// q4_k and q5_k: super-blocks of 256 values in 8 groups of 32. Byte i of each 32 bytes of `qs` holds
// value i (low nibble) and value i + 32 (high nibble) of 64.
//
// Super-blocks of 144 and 176 bytes, 16-byte multiples, but a tensor may start at any multiple of 4:
// loads ask for 2 bytes of alignment only. Spans (span.h) begin at multiples of 16.
#pragma once

#include "include/format/blocks.h"
#include "include/format/span.h"

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

// 32 bytes at a multiple of 16.
struct Bytes32 {
    uint4 first;
    uint4 second;

    template <typename P>
    static Bytes32 load(P from) { return { from[0], from[1] }; }

    // Bytes 8 r to 8 r + 7.
    uint2 run(uint r) const {
        const uint4 words = r < 2 ? first : second;
        return r % 2 == 0 ? words.xy : words.zw;
    }
};

// The scale and the minimum of group g of q4_k and q5_k, of the first 16 bytes of a super-block: d, dmin and 12 bytes of
// scales (see scale_and_min).
inline float2 group_affine(uint4 head, uint g) {
    const uint shift = 8 * (g % 4);
    const uint a = head.y >> shift & 255;
    const uint b = head.z >> shift & 255;
    const uint c = head.w >> shift & 255;
    const uint scale = g < 4 ? a & 63 : (c & 15) | (a >> 6 << 4);
    const uint min = g < 4 ? b & 63 : (c >> 4) | (b >> 6 << 4);
    return float2(half_value(head.x & 0xffff) * float(scale), -half_value(head.x >> 16) * float(min));
}
