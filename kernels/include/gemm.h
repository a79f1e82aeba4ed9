// Matrix product on 8x8 SIMD group matrices, weights (N, K) in any format:
//
//     y[m][n] = alpha * sum_k x[m][k] * weight[n][k] + beta * y[m][n]
//
// Launch:  grid (ceil(N / 64), ceil(M / TILE_M)), 4 SIMD groups; a threadgroup computes a tile of
//          TILE_M x 64, SIMD groups side by side: 2 x 2 of them for TILE_M = 32, 1 x 4 for TILE_M = 8.
// Memory:  x and weights go to threadgroup memory in steps of 32 of K, weights dequantised once for all
//          TILE_M rows; the sums stay in registers, 8 matrices (2 for TILE_M = 8) a SIMD group.
//
// Both tiles are staged as float, not half: activations of Gemma exceed 65504, the accumulators are
// float anyway, float and half matrices multiply at the same rate, and 13.8 KB leave room for two
// threadgroups. Rows of a tile are 36 floats apart, so that the 8 rows of a matrix fall into different
// banks; so are rows of the result, 68 apart. What lies outside of x or weight is staged as 0.
#pragma once

#include "include/dot_rows.h"

constant constexpr uint TILE_N = 64;
constant constexpr uint TILE_K = 32;
constant constexpr uint TILE_STRIDE = TILE_K + 4;
constant constexpr uint RESULT_STRIDE = TILE_N + 4;
constant constexpr uint GEMM_THREADS = 128;

// 8 values to a row of a tile. Rows of a tile start at multiples of 16 bytes.
inline void stage(threadgroup float *to, float4 low, float4 high) {
    *(threadgroup float4 *)to = low;
    *(threadgroup float4 *)(to + 4) = high;
}

// Stages run k / 8 of a row of x that ends at K.
inline void stage_x(threadgroup float *to, device const float *row, uint k, uint K) {
    if (k + RUN <= K) {
        const XRun x = DeviceX{ row }.run(k / RUN);
        stage(to, x.low, x.high);
    } else {
        for (uint i = 0; i < RUN; i++) {
            to[i] = k + i < K ? row[k + i] : 0.0f;
        }
    }
}

// Stages run k / 8 of a weight row that ends at K.
template <typename F>
inline void stage_weight(threadgroup float *to, typename F::Row row, uint k, uint K) {
    if (k / RUN < whole_runs<F>(K)) {
        const Run w = F::run(row, k / RUN);
        stage(to, low_values(w), high_values(w));
    } else {
        for (uint i = 0; i < RUN; i++) {
            to[i] = k + i < K ? F::value(row, k + i) : 0.0f;
        }
    }
}

// Stages 32 columns of x from k on; rows from M on are 0.
template <uint TILE_M, typename P>
inline void stage_x_tile(
    threadgroup float *tile, device const float *x, constant P &params, uint2 m_k, uint thread_index
) {
    for (uint t = thread_index; t < TILE_M * TILE_K / RUN; t += GEMM_THREADS) {
        const uint m = m_k.x + t / (TILE_K / RUN);
        const uint column = t % (TILE_K / RUN) * RUN;
        const uint end = m < params.M ? matmul_k(params.K) : 0;
        stage_x(tile + t / (TILE_K / RUN) * TILE_STRIDE + column, x + ulong(m) * params.lda, m_k.y + column, end);
    }
}

// sums += x tile * weight tile^T, for the matrices of one SIMD group.
template <uint ROWS, uint COLUMNS>
inline void multiply_tiles(
    threadgroup const float *x_tile, threadgroup const float *w_tile, thread simdgroup_float8x8 (&sums)[ROWS][COLUMNS]
) {
    for (uint k = 0; k < TILE_K; k += 8) {
        simdgroup_float8x8 left[ROWS];
#pragma unroll
        for (uint i = 0; i < ROWS; i++) {
            simdgroup_load(left[i], x_tile + 8 * i * TILE_STRIDE + k, TILE_STRIDE);
        }
#pragma unroll
        for (uint j = 0; j < COLUMNS; j++) {
            simdgroup_float8x8 right;  // (k, n) from rows of n
            simdgroup_load(right, w_tile + 8 * j * TILE_STRIDE + k, TILE_STRIDE, ulong2(0, 0), true);
#pragma unroll
            for (uint i = 0; i < ROWS; i++) {
                simdgroup_multiply_accumulate(sums[i][j], left[i], right, sums[i][j]);
            }
        }
    }
}

template <typename F, typename P, uint TILE_M>
kernel void simd_gemm(
    device const float *x        [[buffer(0)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(1)]],  // (N, K)
    device float *y              [[buffer(2)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(3)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint thread_index            [[thread_index_in_threadgroup]],
    uint simd_group              [[simdgroup_index_in_threadgroup]]
) {
    constexpr uint TILE_FLOATS = (TILE_M + TILE_N) * TILE_STRIDE;
    constexpr uint SIMD_COLUMNS = TILE_M == 32 ? 2 : 4;  // SIMD groups side by side along n
    constexpr uint ROWS = TILE_M / 8 / (4 / SIMD_COLUMNS);  // matrices of a SIMD group
    constexpr uint COLUMNS = TILE_N / 8 / SIMD_COLUMNS;
    static_assert(TILE_FLOATS * sizeof(float) <= 32 * 1024, "threadgroup memory");
    static_assert(TILE_FLOATS >= TILE_M * RESULT_STRIDE, "the result takes the place of the tiles");
    threadgroup float4 memory[TILE_FLOATS / 4];
    threadgroup float *x_tile = (threadgroup float *)memory;
    threadgroup float *w_tile = x_tile + TILE_M * TILE_STRIDE;

    const uint K = matmul_k(params.K);
    const uint first_m = group.y * TILE_M;
    const uint first_n = group.x * TILE_N;
    const uint simd_m = simd_group / SIMD_COLUMNS * ROWS * 8;
    const uint simd_n = simd_group % SIMD_COLUMNS * COLUMNS * 8;

    // Thread t stages the runs 2 (t % 2) and 2 (t % 2) + 1 of weight row t / 2.
    const WeightLayout at = weight_layout(params);
    const typename F::Row row = F::row(weight, at, min(first_n + thread_index / 2, at.n_rows - 1));
    const uint w_k = thread_index % 2 * (2 * RUN);
    threadgroup float *w_to = w_tile + thread_index / 2 * TILE_STRIDE + w_k;

    simdgroup_float8x8 sums[ROWS][COLUMNS];
    for (uint i = 0; i < ROWS; i++) {
        for (uint j = 0; j < COLUMNS; j++) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    for (uint k = 0; k < K; k += TILE_K) {
        stage_x_tile<TILE_M>(x_tile, x, params, uint2(first_m, k), thread_index);
        stage_weight<F>(w_to, row, k + w_k, K);
        stage_weight<F>(w_to + RUN, row, k + w_k + RUN, K);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        multiply_tiles<ROWS, COLUMNS>(x_tile + simd_m * TILE_STRIDE, w_tile + simd_n * TILE_STRIDE, sums);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // The result goes through threadgroup memory, so that only what lies inside of y is stored.
    threadgroup float *result = (threadgroup float *)memory;
    for (uint i = 0; i < ROWS; i++) {
        for (uint j = 0; j < COLUMNS; j++) {
            simdgroup_store(sums[i][j], result + (simd_m + 8 * i) * RESULT_STRIDE + simd_n + 8 * j, RESULT_STRIDE);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < TILE_M * TILE_N; i += GEMM_THREADS) {
        const uint m = first_m + i / TILE_N;
        const uint n = first_n + i % TILE_N;
        if (m < params.M && n < params.N) {
            store_product(y + ulong(m) * params.ldc + n, result[i / TILE_N * RESULT_STRIDE + i % TILE_N], params);
        }
    }
}
