// layernorm_f32: y[r][i] = (x[r][i] - mean) / sqrt(variance + eps) * weight[i] + bias[i]
//
// The variance is summed about the mean in a pass of its own: the mean of squares minus the square
// of the mean loses all digits when the mean is large.
//
// Launch:  one threadgroup a row, about dim / 4 threads in whole SIMD groups.
// Memory:  x is read three times (twice from cache), weight, bias and y once; 128 bytes of
//          threadgroup memory for the sums.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"
#include "include/row.h"

using namespace metal;

inline float share_of_sum(device const float *row, RowShare share) {
    device const float4 *vectors = (device const float4 *)row;
    float sum = 0.0f;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        sum += dot(vectors[i], float4(1.0f));
    }
    for (uint i = 4 * share.n_vec + share.first; i < share.dim; i += share.stride) {
        sum += row[i];
    }
    return sum;
}

inline float share_of_deviations(device const float *row, float mean, RowShare share) {
    device const float4 *vectors = (device const float4 *)row;
    float sum = 0.0f;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        const float4 v = vectors[i] - mean;
        sum += dot(v, v);
    }
    for (uint i = 4 * share.n_vec + share.first; i < share.dim; i += share.stride) {
        sum += (row[i] - mean) * (row[i] - mean);
    }
    return sum;
}

kernel void layernorm_f32(
    device const float *x             [[buffer(0)]],
    device const float *weight        [[buffer(1)]],
    device const float *bias          [[buffer(2)]],
    device float *y                   [[buffer(3)]],
    constant LayerNormParams &params  [[buffer(4)]],
    uint row                          [[threadgroup_position_in_grid]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint n_threads                    [[threads_per_threadgroup]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]],
    uint n_simd_groups                [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];

    const uint dim = params.dim;
    const RowShare share = share_row(dim, thread_index, n_threads);
    device const float *x_row = x + row * dim;
    device float *y_row = y + row * dim;

    const SimdPlace place = { simd_group, lane, n_simd_groups };
    const float mean = threadgroup_sum(share_of_sum(x_row, share), shared, place) / float(dim);
    const float square =
        threadgroup_sum(share_of_deviations(x_row, mean, share), shared, place);
    const float inverse = inverse_rms(square, dim, params.eps);

    device const float4 *x_vec = (device const float4 *)x_row;
    device const float4 *w_vec = (device const float4 *)weight;
    device const float4 *b_vec = (device const float4 *)bias;
    device float4 *y_vec = (device float4 *)y_row;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        y_vec[i] = (x_vec[i] - mean) * inverse * w_vec[i] + b_vec[i];
    }
    for (uint i = 4 * share.n_vec + share.first; i < dim; i += share.stride) {
        y_row[i] = (x_row[i] - mean) * inverse * weight[i] + bias[i];
    }
}
