// Numbers as sums of two halves, and rows of a matrix that four lanes hold (<akunu_tensor>).
#pragma once

#include <metal_stdlib>

using namespace metal;

inline uint pack(float2 pair) { return as_type<uint>(half2(pair)); }

// What half2(pair) has lost, as halves.
inline uint pack_rest(float2 pair) { return as_type<uint>(half2(pair - float2(half2(pair)))); }

// The largest, and the sum, over the four lanes that hold a row.
inline float quad_row_max(float value) {
    value = max(value, simd_shuffle_xor(value, 1));
    return max(value, simd_shuffle_xor(value, 2));
}

inline float quad_row_sum(float value) {
    value += simd_shuffle_xor(value, 1);
    return value + simd_shuffle_xor(value, 2);
}
