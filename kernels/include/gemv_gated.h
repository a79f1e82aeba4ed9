// Matrix times gated vector: the activation of a feed-forward network and its down projection at once.
//
//     y[m][n] = alpha * sum_k weight[n][k] * act(gate[m][k]) * up[m][k] + beta * y[m][n]
//
// Launch:  grid (ceil(N / (4 * SIMD groups)), M).
// Memory:  a threadgroup gates 1024 values at a time into 4 KB of threadgroup memory, once for all of
//          its rows; every weight is read once for each m.
#pragma once

#include "include/activation.h"
#include "include/dot_rows.h"

struct Silu {
    static float apply(float x) { return act_silu(x); }
};
struct Gelu {
    static float apply(float x) { return act_gelu(x); }
};

constant constexpr uint GATED_ROWS = 4;
constant constexpr uint GATED_TILE = 1024;
static_assert(GATED_TILE * sizeof(float) <= 32 * 1024, "threadgroup memory");
static_assert(GATED_TILE % 256 == 0, "a tile is a whole number of blocks of every format");

template <typename F, typename P, typename A>
kernel void gemv_gated(
    device const float *gate     [[buffer(0)]],  // (M, K), rows lda apart
    device const float *up       [[buffer(1)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(2)]],  // (N, K)
    device float *y              [[buffer(3)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(4)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint thread_index            [[thread_index_in_threadgroup]],
    uint simd_group              [[simdgroup_index_in_threadgroup]],
    uint lane                    [[thread_index_in_simdgroup]],
    uint n_simd_groups           [[simdgroups_per_threadgroup]]
) {
    threadgroup float4 memory[GATED_TILE / 4];
    threadgroup float *gated = (threadgroup float *)memory;

    const uint K = matmul_k(params.K);
    const uint first = (group.x * n_simd_groups + simd_group) * GATED_ROWS;
    typename F::Row rows[GATED_ROWS];
    take_rows<F, GATED_ROWS>(weight, weight_layout(params), first, rows);

    device const float *gate_row = gate + ulong(group.y) * params.lda;
    device const float *up_row = up + ulong(group.y) * params.lda;
    float sums[GATED_ROWS] = { 0.0f };
    for (uint begin = 0; begin < K; begin += GATED_TILE) {
        const uint count = min(K - begin, GATED_TILE);
        for (uint i = thread_index; i < count; i += n_simd_groups * SIMD_WIDTH) {
            gated[i] = A::apply(gate_row[begin + i]) * up_row[begin + i];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        dot_rows<F, GATED_ROWS>(rows, ThreadgroupX{ gated }, uint2(begin, count), lane, sums);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    device float *y_row = y + ulong(group.y) * params.ldc;
    for (uint r = 0; r < GATED_ROWS; r++) {
        const float product = simd_sum(sums[r]);
        if (lane == r && first + r < params.N) {
            store_product(y_row + first + r, product, params);
        }
    }
}
