// What both forms of products of a few rows share (decode_gemm.h, shared_gemm.h): how x is tiled, weights as halves, and which of
// up to three weights a threadgroup has.
#pragma once

#include <akunu_tensor>

#include "include/format/all.h"
#include "include/tensor_row.h"

// Outputs of a matrix.
constant constexpr uint MATRIX_OUTPUTS = 16;
// Rows of a tile of x.
constant constexpr uint X_ROWS = 8;
// Spans that the four lanes of a row of a matrix have together, and the vectors of a tile of x that belong to them.
constant constexpr uint QUAD = 4;
constant constexpr uint QUAD_VECTORS = X_ROWS * QUAD * SPAN / 8;

inline uint4 pack(float4 low, float4 high) { return uint4(pack(low.xy), pack(low.zw), pack(high.xy), pack(high.zw)); }

// Eight numbers of 16 bits as halves.
inline uint4 as_halves(uint4 bits, half) { return bits; }
inline uint4 as_halves(uint4 bits, ushort) {
    const float4 low = as_type<float4>(uint4(bits.x << 16, bits.x & 0xffff0000u, bits.y << 16, bits.y & 0xffff0000u));
    const float4 high = as_type<float4>(uint4(bits.z << 16, bits.z & 0xffff0000u, bits.w << 16, bits.w & 0xffff0000u));
    return pack(low, high);
}

// One of three pointers. Not by `?:` on members, which would be put into memory.
template <typename T>
inline T pick(uint index, T zero, T one, T two) {
    return index == 0 ? zero : index == 1 ? one : two;
}

// Which weight a threadgroup has, the rows of that, and which of its threadgroups this one is.
struct ChosenWeight {
    uint index;
    uint n;
    uint group;
};

// n / divisor, rounded up. A division takes as long as many instructions, and most divisors are powers of two.
inline uint divide_up(uint n, uint divisor) {
    const uint all = n + divisor - 1;
    return popcount(divisor) == 1 ? all >> ctz(divisor) : all / divisor;
}

inline ChosenWeight choose_weight(constant DecodeGemmParams &params, uint group, uint outputs) {
    const uint groups_0 = divide_up(params.N0, outputs);
    const uint groups_1 = divide_up(params.N1, outputs);
    if (group < groups_0) {
        return { 0, params.N0, group };
    }
    if (group < groups_0 + groups_1) {
        return { 1, params.N1, group - groups_0 };
    }
    return { 2, params.N2, group - groups_0 - groups_1 };
}
