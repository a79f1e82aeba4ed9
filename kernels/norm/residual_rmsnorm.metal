// residual_rmsnorm_f32: h[r] += x[r]; y[r] = h[r] / sqrt(mean(h[r]^2) + eps) * weight
//
// The residual connection and the norm that follows it, in one dispatch.
//
// Launch:  one threadgroup a row, about dim / 4 threads in whole SIMD groups.
// Memory:  h and x are read once and h is written once; the second pass finds h in the cache, each
//          thread reading what it wrote itself. 128 bytes of threadgroup memory for the sum.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"
#include "include/row.h"

using namespace metal;

// h += x for this thread's share; returns its part of the sum of squares of the new h.
inline float add_and_square(device float *h, device const float *x, RowShare share) {
    device float4 *h_vec = (device float4 *)h;
    device const float4 *x_vec = (device const float4 *)x;
    float square = 0.0f;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        const float4 sum = h_vec[i] + x_vec[i];
        h_vec[i] = sum;
        square += dot(sum, sum);
    }
    for (uint i = 4 * share.n_vec + share.first; i < share.dim; i += share.stride) {
        const float sum = h[i] + x[i];
        h[i] = sum;
        square += sum * sum;
    }
    return square;
}

kernel void residual_rmsnorm_f32(
    device float *h                   [[buffer(0)]],
    device const float *x             [[buffer(1)]],
    device const float *weight        [[buffer(2)]],
    device float *y                   [[buffer(3)]],
    constant RMSNormParams &params    [[buffer(4)]],
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
    device float *h_row = h + row * dim;
    device float *y_row = y + row * dim;

    const SimdPlace place = { simd_group, lane, n_simd_groups };
    const float square =
        threadgroup_sum(add_and_square(h_row, x + row * dim, share), shared, place);
    const float inverse = inverse_rms(square, dim, params.eps);

    device const float4 *h_vec = (device const float4 *)h_row;
    device const float4 *w_vec = (device const float4 *)weight;
    device float4 *y_vec = (device float4 *)y_row;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        y_vec[i] = h_vec[i] * inverse * w_vec[i];
    }
    for (uint i = 4 * share.n_vec + share.first; i < dim; i += share.stride) {
        y_row[i] = h_row[i] * inverse * weight[i];
    }
}
