// rmsnorm_f32: y[r][i] = x[r][i] / sqrt(mean(x[r]^2) + eps) * weight[i]
//
// Launch:  one threadgroup a row, about dim / 4 threads in whole SIMD groups.
// Memory:  x is read twice (the second time from cache), weight and y once; 128 bytes of
//          threadgroup memory for the sum.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"
#include "include/row.h"

using namespace metal;

kernel void rmsnorm_f32(
    device const float *x             [[buffer(0)]],
    device const float *weight        [[buffer(1)]],
    device float *y                   [[buffer(2)]],
    constant RMSNormParams &params    [[buffer(3)]],
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
    const float square = threadgroup_sum(share_of_squares(x_row, share), shared, place);
    const float inverse = inverse_rms(square, dim, params.eps);

    device const float4 *x_vec = (device const float4 *)x_row;
    device const float4 *w_vec = (device const float4 *)weight;
    device float4 *y_vec = (device float4 *)y_row;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        y_vec[i] = x_vec[i] * inverse * w_vec[i];
    }
    for (uint i = 4 * share.n_vec + share.first; i < dim; i += share.stride) {
        y_row[i] = x_row[i] * inverse * weight[i];
    }
}
