// head_rmsnorm_f32: x[t][h] = x[t][h] / sqrt(mean(x[t][h]^2) + eps) * weight, in place
//
// The QK norm of Qwen 3 and Gemma 3: each head of head_dim elements by itself.
//
// Launch:  one SIMD group a head, four heads a threadgroup of 128 threads. A head has 64 to 256
//          elements, 2 to 8 a lane, so that one SIMD sum replaces the threadgroup's barriers.
// Memory:  x is read twice (the second time from cache) and written once; no threadgroup memory.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"
#include "include/row.h"

using namespace metal;

kernel void head_rmsnorm_f32(
    device float *x                   [[buffer(0)]],
    device const float *weight        [[buffer(1)]],
    constant HeadNormParams &params   [[buffer(2)]],
    uint group                        [[threadgroup_position_in_grid]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]],
    uint n_simd_groups                [[simdgroups_per_threadgroup]]
) {
    const uint dim = params.head_dim;
    const uint head = group * n_simd_groups + simd_group;
    if (head >= params.seq_len * params.n_heads) {
        return;  // the whole SIMD group leaves, and there is no barrier below
    }
    const RowShare share = share_row(dim, lane, SIMD_WIDTH);
    device float *row = x + head * dim;
    const float inverse = inverse_rms(simd_sum(share_of_squares(row, share)), dim, params.eps);

    device float4 *vectors = (device float4 *)row;
    device const float4 *w_vec = (device const float4 *)weight;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        vectors[i] = vectors[i] * inverse * w_vec[i];
    }
    for (uint i = 4 * share.n_vec + share.first; i < dim; i += share.stride) {
        row[i] = row[i] * inverse * weight[i];
    }
}
