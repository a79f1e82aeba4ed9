// y = W x for rows of q4_0 blocks: one SIMD group a row.
#include <metal_stdlib>
#include "blocks.h"
using namespace metal;

constant uint FC_ROWS_PER_GROUP [[function_constant(2)]];
constant bool FC_ADD [[function_constant(3)]];
constant bool ADDS = is_function_constant_defined(FC_ADD) ? FC_ADD : false;

struct GemvParams {
    uint32_t n_rows;
    uint32_t n_cols;
};

template <typename block_t>
kernel void gemv(device const block_t *weights [[buffer(0)]],
                 device const float *x [[buffer(1)]],
                 device float *y [[buffer(2)]],
                 constant GemvParams &params [[buffer(3)]],
                 uint group [[threadgroup_position_in_grid]],
                 ushort lane [[thread_index_in_simdgroup]],
                 ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
    uint row = group * FC_ROWS_PER_GROUP + simdgroup;
    if (row >= params.n_rows) {
        return;
    }
    uint n_blocks = params.n_cols / 32;
    float sum = 0.0f;
    for (uint block = lane; block < n_blocks; block += 32) {
        device const block_t &w = weights[row * n_blocks + block];
        device const float4 *v = (device const float4 *)(x + block * 32);
        for (uint i = 0; i < 4; i++) {
            sum += dot(low_values(w, i), v[i]) + dot(high_values(w, i), v[i + 4]);
        }
    }
    sum = simd_sum(sum);
    if (lane == 0) {
        y[row] = ADDS ? y[row] + sum : sum;
    }
}

template [[host_name("gemv_q4_0")]] kernel decltype(gemv<block_q4_0>) gemv<block_q4_0>;
