// Codes of five bits: nibbles as in q4_0, and bit j of 32 is the fifth bit of value j.
#pragma once

#include "include/format/blocks.h"

// Run r of 16 bytes of nibbles, r = 0 to 3; its fifth bits are byte r of `qh`.
inline Run five_bit_run(device const uchar *qs, device const uchar *qh, uint r, float2 affine) {
    const uint2 bytes = load_8_bytes(qs + 8 * (r % 2));
    const uint shift = 4 * (r / 2);
    const uint fifth = qh[r];
    const uint4 low = byte_fields(bytes.x, shift, 15) | four_bits(fifth) << 4;
    const uint4 high = byte_fields(bytes.y, shift, 15) | four_bits(fifth >> 4) << 4;
    return Run{ float4(low), float4(high), affine.x, affine.y };
}
