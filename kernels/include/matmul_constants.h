// Function constants of the matrix products. One that is not set leaves the value to the params.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant uint FC_GEMM_K [[function_constant(20)]];
constant uint FC_BATCH_M [[function_constant(21)]];
constant uint FC_GROUP_SIZE [[function_constant(22)]];
constant uint FC_GATE [[function_constant(23)]];
constant uint FC_SCALE_TYPE [[function_constant(24)]];

// 0: no gate, 1: SiLU, 2: the tanh form of GELU.
constant uint GATE = is_function_constant_defined(FC_GATE) ? FC_GATE : 0;

inline uint matmul_k(uint from_params) {
    return is_function_constant_defined(FC_GEMM_K) ? FC_GEMM_K : from_params;
}
inline uint matmul_batch(uint from_params) {
    return is_function_constant_defined(FC_BATCH_M) ? FC_BATCH_M : from_params;
}
inline uint matmul_group_size(uint from_params) {
    return is_function_constant_defined(FC_GROUP_SIZE) ? FC_GROUP_SIZE : from_params;
}
inline uint matmul_scale_type(uint from_params) {
    return is_function_constant_defined(FC_SCALE_TYPE) ? FC_SCALE_TYPE : from_params;
}
