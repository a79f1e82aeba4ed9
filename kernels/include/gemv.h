// Matrix times vector, weights (N, K) in any format:
//
//     y[m][n] = alpha * sum_k weight[n][k] * x[m][k] + beta * y[m][n]
//
// Launch:  grid (ceil(N / (ROWS * SIMD groups)), M), any number of SIMD groups.
// Memory:  every weight is read once for each m, x once a SIMD group (from cache); sums in registers;
//          no threadgroup memory.
#pragma once

#include "include/dot_rows.h"

template <typename F, typename P, uint ROWS>
kernel void gemv(
    device const float *x        [[buffer(0)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(1)]],  // (N, K)
    device float *y              [[buffer(2)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(3)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint simd_group              [[simdgroup_index_in_threadgroup]],
    uint lane                    [[thread_index_in_simdgroup]],
    uint n_simd_groups           [[simdgroups_per_threadgroup]]
) {
    const uint first = (group.x * n_simd_groups + simd_group) * ROWS;
    typename F::Row rows[ROWS];
    take_rows<F, ROWS>(weight, weight_layout(params), first, rows);

    float sums[ROWS] = { 0.0f };
    const DeviceX x_row = { x + ulong(group.y) * params.lda };
    dot_rows<F, ROWS>(rows, x_row, uint2(0, matmul_k(params.K)), lane, sums);

    device float *y_row = y + ulong(group.y) * params.ldc;
    for (uint r = 0; r < ROWS; r++) {
        const float product = simd_sum(sums[r]);
        if (lane == r && first + r < params.N) {
            store_product(y_row + first + r, product, params);
        }
    }
}
