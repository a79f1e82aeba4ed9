// Matrix times vector by SIMD groups that share a few outputs and split K, weights (N, K) in any format:
//
//     y[m][n] = alpha * sum_k weight[n][k] * x[m][k] + beta * y[m][n]
//
// For a GPU with so many SIMD groups under way that one for each four outputs does not fill it: each SIMD group
// computes its share of K, and the sums of the shares meet in threadgroup memory.
//
// Launch:  grid (ceil(N / ROWS), M), any number of SIMD groups; shares are multiples of 256 values.
// Memory:  every weight is read once for each m, x once for ROWS outputs (from cache). x begins at a multiple of 16
//          bytes, so that rows of whole float4 are read by them.
#pragma once

#include "include/dot_rows.h"

// Shares begin at whole blocks of every format.
constant constexpr uint SHARE = 256;

// x in device memory, at a multiple of 16 bytes.
struct AlignedX {
    device const float *x;

    XRun run(uint index) const {
        device const float4 *p = (device const float4 *)(x + RUN * index);
        return x_run(p[0], p[1]);
    }
    float value(uint i) const { return x[i]; }
};

template <typename F, typename P, uint ROWS>
kernel void gemv_split(
    device const float *x        [[buffer(0)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(1)]],  // (N, K)
    device float *y              [[buffer(2)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(3)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint thread_index            [[thread_index_in_threadgroup]],
    uint simd_group              [[simdgroup_index_in_threadgroup]],
    uint lane                    [[thread_index_in_simdgroup]],
    uint n_simd_groups           [[simdgroups_per_threadgroup]]
) {
    threadgroup float shares[MAX_SIMD_GROUPS * ROWS];

    const uint first = group.x * ROWS;
    typename F::Row rows[ROWS];
    take_rows<F, ROWS>(weight, weight_layout(params), first, rows);

    const uint k = matmul_k(params.K);
    const uint share = (k + SHARE * n_simd_groups - 1) / (SHARE * n_simd_groups) * SHARE;
    const uint begin = min(simd_group * share, k);
    const uint count = min(share, k - begin);
    float sums[ROWS] = { 0.0f };
    device const float *x_part = x + ulong(group.y) * params.lda + begin;
    if (params.lda % 4 == 0) {
        dot_rows<F, ROWS>(rows, AlignedX{ x_part }, uint2(begin, count), lane, sums);
    } else {
        dot_rows<F, ROWS>(rows, DeviceX{ x_part }, uint2(begin, count), lane, sums);
    }

    for (uint r = 0; r < ROWS; r++) {
        const float sum = simd_sum(sums[r]);
        if (lane == r) {
            shares[simd_group * ROWS + r] = sum;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < ROWS && first + thread_index < params.N) {
        float product = 0.0f;
        for (uint s = 0; s < n_simd_groups; s++) {
            product += shares[s * ROWS + thread_index];
        }
        store_product(y + ulong(group.y) * params.ldc + first + thread_index, product, params);
    }
}
