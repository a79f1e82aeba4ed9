// Products of the results of an expert with its matrices, on 8x8 SIMD group matrices, weights (n_experts, N, K) in any format:
//
//     y[r][i][n] = gate(W[e][n] . x[r], Wup[e][n] . x[r])   of two weights
//     y[r][i][n] = W[e][n] . x[r][i]                        of one; e is the expert of result i of row r
//
// Launch:  grid (tiles, ceil(N / outputs)), 4 SIMD groups; a threadgroup computes TILE_M results of one expert and 64 outputs, or 32
//          outputs of both weights. Tiles are those of experts/sort_experts.metal; one without results ends at once.
// Memory:  as the products of a dense prompt (include/gemm.h), but that rows of x are gathered and those of y scattered.
#pragma once

#include "include/expert_tile.h"
#include "include/experts.h"
#include "include/gemm.h"

// The row of a weight that thread `in_tile` of the 64 rows of a tile stages.
template <typename F>
inline typename F::Row tile_row(
    device const uchar *weight, device const uchar *up, constant ExpertParams &params, uint expert, uint first_n, uint in_tile
) {
    const ExpertRows of_expert = expert_rows(params, expert);
    const bool is_up = params.is_gated != 0 && in_tile >= TILE_N / 2;
    const uint n = first_n + in_tile - (is_up ? TILE_N / 2 : 0);
    const WeightLayout at = is_up ? second_layout(params, of_expert.end) : first_layout(params, of_expert.end);
    return F::row(is_up ? up : weight, at, min(of_expert.first + n, of_expert.end - 1));
}

template <typename F, uint TILE_M>
kernel void expert_gemm(
    device const float *x             [[buffer(0)]],  // (n_rows, K), of one weight (n_rows, n_used, K)
    device const uint *order          [[buffer(1)]],  // (n_rows * n_used)
    device const uint *tiles          [[buffer(2)]],  // (n_tiles, 3)
    device const uchar *weight        [[buffer(3)]],  // (n_experts, N, K)
    device const uchar *up            [[buffer(4)]],  // (n_experts, N, K)
    device const float *bias          [[buffer(5)]],  // (n_experts, N)
    device const float *up_bias       [[buffer(6)]],  // (n_experts, N)
    device const float *scale         [[buffer(7)]],  // (n_experts)
    device const float *up_scale      [[buffer(8)]],  // (n_experts)
    device float *y                   [[buffer(9)]],  // (n_rows, n_used, N)
    constant ExpertParams &params     [[buffer(10)]],
    uint2 group                       [[threadgroup_position_in_grid]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]]
) {
    constexpr uint TILE_FLOATS = (TILE_M + TILE_N) * TILE_STRIDE;
    constexpr uint SIMD_COLUMNS = TILE_M == 32 ? 2 : 4;     // SIMD groups side by side along n
    constexpr uint ROWS = TILE_M / 8 / (4 / SIMD_COLUMNS);  // matrices of a SIMD group
    constexpr uint COLUMNS = TILE_N / 8 / SIMD_COLUMNS;
    static_assert(TILE_M * TILE_K / RUN <= GEMM_THREADS, "a thread stages one run of x");
    static_assert(TILE_FLOATS >= TILE_M * RESULT_STRIDE, "the result takes the place of the tiles");
    threadgroup float4 memory[TILE_FLOATS / 4];
    threadgroup float *x_tile = (threadgroup float *)memory;
    threadgroup float *w_tile = x_tile + TILE_M * TILE_STRIDE;

    const ExpertTile tile = expert_tile(tiles, group.x, TILE_M, params);
    if (tile.count == 0) {
        return;
    }
    const uint K = params.K;
    const bool is_gated = params.is_gated != 0;
    const uint n_outputs = is_gated ? TILE_N / 2 : TILE_N;
    const uint first_n = group.y * n_outputs;
    const uint simd_m = simd_group / SIMD_COLUMNS * ROWS * 8;
    const uint simd_n = simd_group % SIMD_COLUMNS * COLUMNS * 8;

    // Thread t stages the runs 2 (t % 2) and 2 (t % 2) + 1 of weight row t / 2, and run t % 4 of x row t / 4.
    const typename F::Row row = tile_row<F>(weight, up, params, tile.expert, first_n, thread_index / 2);
    const uint w_k = thread_index % 2 * (2 * RUN);
    threadgroup float *w_to = w_tile + thread_index / 2 * TILE_STRIDE + w_k;
    const uint x_row = thread_index / (TILE_K / RUN);
    const uint x_k = thread_index % (TILE_K / RUN) * RUN;
    threadgroup float *x_to = x_tile + x_row * TILE_STRIDE + x_k;
    device const float *from = x + ulong(row_of_result(result_at(order, tile, x_row, params), params)) * K;
    const uint x_end = x_row < tile.count ? K : 0;

    simdgroup_float8x8 sums[ROWS][COLUMNS];
    for (uint i = 0; i < ROWS; i++) {
        for (uint j = 0; j < COLUMNS; j++) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    for (uint k = 0; k < K; k += TILE_K) {
        if (x_row < TILE_M) {
            stage_x(x_to, from, k + x_k, x_end);
        }
        stage_weight<F>(w_to, row, k + w_k, K);
        stage_weight<F>(w_to + RUN, row, k + w_k + RUN, K);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        multiply_tiles<ROWS, COLUMNS>(x_tile + simd_m * TILE_STRIDE, w_tile + simd_n * TILE_STRIDE, sums);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    threadgroup float *result = (threadgroup float *)memory;
    for (uint i = 0; i < ROWS; i++) {
        for (uint j = 0; j < COLUMNS; j++) {
            simdgroup_store(sums[i][j], result + (simd_m + 8 * i) * RESULT_STRIDE + simd_n + 8 * j, RESULT_STRIDE);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < tile.count * n_outputs; i += GEMM_THREADS) {
        const uint place = i / n_outputs;
        const uint n = first_n + i % n_outputs;
        if (n >= params.N) {
            continue;
        }
        threadgroup const float *product = result + place * RESULT_STRIDE + i % n_outputs;
        float value = finished(product[0], params, tile.expert, n, bias, scale);
        if (is_gated) {
            const float u = finished(product[TILE_N / 2], params, tile.expert, n, up_bias, up_scale);
            value = expert_activation(value, u, params.activation);
        }
        y[ulong(result_at(order, tile, place, params)) * params.N + n] = value;
    }
}
