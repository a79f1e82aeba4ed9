// The q4_0 block and its values.
#pragma once

struct block_q4_0 {
    half d;
    uint8_t qs[16];
};

inline float4 low_values(device const block_q4_0 &block, uint i) {
    uint4 q = uint4(block.qs[4 * i], block.qs[4 * i + 1], block.qs[4 * i + 2], block.qs[4 * i + 3]) & 15;
    return (float4(q) - 8.0f) * float(block.d);
}

inline float4 high_values(device const block_q4_0 &block, uint i) {
    uint4 q = uint4(block.qs[4 * i], block.qs[4 * i + 1], block.qs[4 * i + 2], block.qs[4 * i + 3]) >> 4;
    return (float4(q) - 8.0f) * float(block.d);
}
