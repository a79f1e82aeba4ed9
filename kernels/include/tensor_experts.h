// Products of the results of an expert with its matrices, on NVIDIA's tensor cores, weights (n_experts, N, K) in any format:
//
//     y[r][i][n] = gate(W[e][n] . x[r], Wup[e][n] . x[r])   of two weights
//     y[r][i][n] = W[e][n] . x[r][i]                        of one; e is the expert of result i of row r
//
// x is in halves with a factor for each row (convert/half_rows.metal), weights are rounded to halves, sums are floats.
//
// Launch:  grid (tiles, ceil(N / outputs)): a threadgroup computes TILE_M results of one expert and TILE_N outputs, or half as many of
//          both weights. Tiles are those of experts/sort_experts.metal; one without results ends at once. Threads as in
//          include/tensor_gemm.h.
// Memory:  as there, but that rows of x are gathered and those of y scattered. Of two weights eight outputs of the first and the same
//          of the second lie one behind the other in a tile, so that a lane has both products of an output.
#pragma once

#include "include/expert_tile.h"
#include "include/experts.h"
#include "include/tensor_gemm.h"

template <typename F, uint TILE_M, uint TILE_N, uint SIMD_M, uint SIMD_N, uint SPLIT>
kernel void tensor_experts(
    device const half *x              [[buffer(0)]],  // (n_rows, K), of one weight (n_rows, n_used, K), rows lda apart
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
    device const float *factor        [[buffer(11)]],  // of the rows of x
    uint2 group                       [[threadgroup_position_in_grid]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]]
) {
    typedef TensorTile<F, TILE_M, TILE_N, SIMD_M, SIMD_N, SPLIT> Tile;
    static_assert(TILE_N % 32 == 0, "a SIMD group has rows of one weight");
    threadgroup uint4 memory[Tile::MEMORY];
    threadgroup uint stages[Tile::STAGES];

    const ExpertTile of = expert_tile(tiles, group.x, TILE_M, params);
    if (of.count == 0) {
        return;
    }
    const bool is_gated = params.is_gated != 0;
    const uint first_n = group.y * (is_gated ? TILE_N / 2 : TILE_N);
    const ExpertRows rows = expert_rows(params, of.expert);
    const uint in_team = thread_index % Tile::TEAM;
    Tile tile;
    if (is_gated) {
        const bool is_up = in_team >= Tile::TEAM / 2;
        const uint in_weight = in_team % (Tile::TEAM / 2);
        const WeightLayout at = is_up ? second_layout(params, rows.end) : first_layout(params, rows.end);
        tile.weights.begin(is_up ? up : weight, at, rows.first + first_n, in_weight, params.K);
        tile.w_row = in_weight / 16 * 16 + in_weight / 2 % 8 + (is_up ? 8 : 0);
    } else {
        tile.weights.begin(weight, first_layout(params, rows.end), rows.first + first_n, in_team, params.K);
        tile.w_row = in_team / 2;
    }
#pragma unroll
    for (uint i = 0; i < Tile::X_VECTORS; i++) {
        const uint row = row_of_result(result_at(order, of, Tile::x_row(in_team, i), params), params);
        tile.x_rows[i] = x + ulong(row) * params.lda + Tile::x_column(in_team);
    }
    tile.multiply(memory, stages, params.K, thread_index);
    if (!tile.join(memory, thread_index)) {
        return;
    }

#pragma unroll
    for (uint i = 0; i < Tile::ROWS; i++) {
#pragma unroll
        for (uint lower = 0; lower < 2; lower++) {
            const uint place = Tile::simd_m(in_team) + 16 * i + 8 * lower + lane / 4;
            if (place >= of.count) {
                continue;
            }
            const uint result = result_at(order, of, place, params);
            const float row_factor = factor[row_of_result(result, params)];
            device float *row = y + ulong(result) * params.N;
#pragma unroll
            for (uint j = 0; j < Tile::COLUMNS; j++) {
                // Of two weights every second matrix is one of the second.
                if (is_gated && j % 2 == 1) {
                    continue;
                }
                const uint column = Tile::simd_n(in_team) + 8 * j;
                const uint first = first_n + (is_gated ? column / 2 : column) + lane % 4 * 2;
                const float2 pair = lower == 0 ? tile.sums[i][j].xy : tile.sums[i][j].zw;
                const float4 other = tile.sums[i][j / 2 * 2 + 1];
                const float2 ups = lower == 0 ? other.xy : other.zw;
#pragma unroll
                for (uint c = 0; c < 2; c++) {
                    const uint n = first + c;
                    if (n >= params.N) {
                        continue;
                    }
                    float value = finished((c == 0 ? pair.x : pair.y) * row_factor, params, of.expert, n, bias, scale);
                    if (is_gated) {
                        const float product = (c == 0 ? ups.x : ups.y) * row_factor;
                        const float u = finished(product, params, of.expert, n, up_bias, up_scale);
                        value = expert_activation(value, u, params.activation);
                    }
                    row[n] = value;
                }
            }
        }
    }
}
