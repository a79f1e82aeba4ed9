// Matrix times a few vectors, weights (N, K) in any format:
//
//     y[m][n] = alpha * sum_k weight[n][k] * x[m][k] + beta * y[m][n],  M = 2 to 16
//
// Launch:  grid (ceil(N / (2 * SIMD groups)), ceil(M / 16)), any number of SIMD groups.
// Memory:  every weight is read once for up to 16 vectors; 2 x 16 sums in registers; no threadgroup
//          memory. With FC_BATCH_M set, the loops over m have a known length.
#pragma once

#include "include/dot_rows.h"

constant constexpr uint BATCH_ROWS = 2;
constant constexpr uint MAX_BATCH = 16;

// The sums of all m are indexed by constants only, after unrolling, and so stay in registers.
template <typename F>
inline void dot_batch(
    thread typename F::Row (&rows)[BATCH_ROWS], device const float *x, uint lda, uint2 batch_K, uint lane,
    thread float (&sums)[MAX_BATCH][BATCH_ROWS]
) {
    const uint n_runs = whole_runs<F>(batch_K.y);
    for (uint pair = lane; pair < n_runs / 2; pair += SIMD_WIDTH) {
        const uint a = first_of_pair<F>(pair);
        const uint b = a + F::PAIR_GAP;
        Run wa[BATCH_ROWS];
        Run wb[BATCH_ROWS];
        for (uint r = 0; r < BATCH_ROWS; r++) {
            wa[r] = F::run(rows[r], a);
            wb[r] = F::run(rows[r], b);
        }
#pragma unroll
        for (uint m = 0; m < MAX_BATCH; m++) {
            if (m < batch_K.x) {
                const DeviceX x_row = { x + ulong(m) * lda };
                const XRun xa = x_row.run(a);
                const XRun xb = x_row.run(b);
                for (uint r = 0; r < BATCH_ROWS; r++) {
                    sums[m][r] += dot_run<F>(wa[r], xa) + dot_run<F>(wb[r], xb);
                }
            }
        }
    }
    // Plain numbers: what is left behind the last pair, fewer than 16 values.
    const uint i = n_runs / 2 * (2 * RUN) + lane;
    if (F::BLOCK == 1 && i < batch_K.y) {
#pragma unroll
        for (uint m = 0; m < MAX_BATCH; m++) {
            if (m < batch_K.x) {
                for (uint r = 0; r < BATCH_ROWS; r++) {
                    sums[m][r] += F::value(rows[r], i) * x[ulong(m) * lda + i];
                }
            }
        }
    }
}

template <typename F, typename P>
kernel void gemv_batched(
    device const float *x        [[buffer(0)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(1)]],  // (N, K)
    device float *y              [[buffer(2)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(3)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint simd_group              [[simdgroup_index_in_threadgroup]],
    uint lane                    [[thread_index_in_simdgroup]],
    uint n_simd_groups           [[simdgroups_per_threadgroup]]
) {
    const uint first_m = group.y * MAX_BATCH;
    const uint batch = min(matmul_batch(params.M) - first_m, MAX_BATCH);
    const uint first = (group.x * n_simd_groups + simd_group) * BATCH_ROWS;
    typename F::Row rows[BATCH_ROWS];
    take_rows<F, BATCH_ROWS>(weight, weight_layout(params), first, rows);

    float sums[MAX_BATCH][BATCH_ROWS] = { { 0.0f } };
    const uint2 batch_K = uint2(batch, matmul_k(params.K));
    dot_batch<F>(rows, x + ulong(first_m) * params.lda, params.lda, batch_K, lane, sums);

#pragma unroll
    for (uint m = 0; m < MAX_BATCH; m++) {
        if (m < batch) {
            for (uint r = 0; r < BATCH_ROWS; r++) {
                const float product = simd_sum(sums[m][r]);
                if (lane == r && first + r < params.N) {
                    store_product(y + ulong(first_m + m) * params.ldc + first + r, product, params);
                }
            }
        }
    }
}
