// softmax_f32: x[r][i] = exp(x[r][i] - max(x[r])) / Σ_j exp(x[r][j] - max(x[r])), in place.
//
// A row of nothing but -infinity becomes zeros.
//
// Launch:  one threadgroup a row, about cols / 4 threads in whole SIMD groups.
// Memory:  the row is read three times (the last two from cache) and written once; 128 bytes of
//          threadgroup memory for the maximum and the sum.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"

using namespace metal;

kernel void softmax_f32(
    device float *data                [[buffer(0)]],
    constant SoftmaxParams &params    [[buffer(1)]],
    uint row                          [[threadgroup_position_in_grid]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint n_threads                    [[threads_per_threadgroup]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]],
    uint n_simd_groups                [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];
    const SimdPlace place = { simd_group, lane, n_simd_groups };
    device float *x = data + ulong(row) * params.cols;

    float peak = -INFINITY;
    for (uint i = thread_index; i < params.cols; i += n_threads) {
        peak = max(peak, x[i]);
    }
    peak = threadgroup_max(peak, shared, place);
    // Nothing to compare with: any finite peak makes each exponential of the row zero.
    peak = peak == -INFINITY ? 0.0f : peak;

    float sum = 0.0f;
    for (uint i = thread_index; i < params.cols; i += n_threads) {
        sum += precise::exp(x[i] - peak);
    }
    sum = threadgroup_sum(sum, shared, place);
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;

    for (uint i = thread_index; i < params.cols; i += n_threads) {
        x[i] = precise::exp(x[i] - peak) * inverse;
    }
}
