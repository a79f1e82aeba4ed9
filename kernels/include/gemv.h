// Matrix times vector, weights (N, K) in any format:
//
//     y[m][n] = alpha * sum_k weight[n][k] * x[m][k] + beta * y[m][n]
//
// Launch:  grid (ceil(N / (ROWS * SIMD groups)), M), any number of SIMD groups.
// Memory:  every weight is read once for each m, x once a SIMD group (from cache); sums in registers.
//          q4_k and q5_k take 32 weights a lane, and decode their scales once instead of four times: x is staged in 4.5 KB
//          of threadgroup memory, once for all SIMD groups.
#pragma once

#include "include/dot_spans.h"

// Formats whose scales cost more to decode than x costs to stage.
template <typename F>
struct TakesSpans {
    static constant constexpr bool VALUE = false;
};
template <>
struct TakesSpans<FormatQ4K> {
    static constant constexpr bool VALUE = true;
};
template <>
struct TakesSpans<FormatQ5K> {
    static constant constexpr bool VALUE = true;
};

// Rows whose spans a lane holds at once.
constant constexpr uint SPAN_ROWS = 4;

// A thread's place in its threadgroup.
struct GemvPlace {
    uint thread_index;
    uint n_threads;
    uint lane;
};

// Adds to sums[r] this lane's share of sum_k row_r[k] * x[k]. All threads of the threadgroup must call it; K is a multiple
// of 32.
template <typename F, uint ROWS>
inline void dot_shared_spans(
    thread typename Spans<F>::Row (&rows)[ROWS], device const float *x, uint K, GemvPlace at,
    threadgroup float4 *stage, thread float (&sums)[ROWS]
) {
    static_assert(ROWS % SPAN_ROWS == 0, "rows are taken in equal parts");
    const uint n_spans = K / SPAN;
    for (uint first = 0; first < n_spans; first += SIMD_WIDTH) {
        const uint count = min(n_spans - first, SIMD_WIDTH);
        const uint mine = min(at.lane, count - 1);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        device const packed_float4 *from = (device const packed_float4 *)(x + first * SPAN);
        for (uint i = at.thread_index; i < count * SPAN_VECTORS; i += at.n_threads) {
            stage[i / SPAN_VECTORS * (SPAN_STRIDE / 4) + i % SPAN_VECTORS] = float4(from[i]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint part = 0; part < ROWS; part += SPAN_ROWS) {
            typename Spans<F>::Span spans[SPAN_ROWS];
#pragma unroll
            for (uint r = 0; r < SPAN_ROWS; r++) {
                spans[r] = Spans<F>::load(rows[part + r], first + mine);
            }
            if (at.lane < count) {
#pragma unroll
                for (uint r = 0; r < SPAN_ROWS; r++) {
                    sums[part + r] += dot_span<F>(spans[r], stage + mine * (SPAN_STRIDE / 4));
                }
            }
        }
    }
}

template <typename F, typename P, uint ROWS>
kernel void gemv(
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
    threadgroup float4 stage[TakesSpans<F>::VALUE ? STAGE_VECTORS : 1];

    const uint first = (group.x * n_simd_groups + simd_group) * ROWS;
    device const float *x_row = x + ulong(group.y) * params.lda;
    float sums[ROWS] = { 0.0f };
    if (TakesSpans<F>::VALUE) {
        typename Spans<F>::Row rows[ROWS];
        take_rows<Spans<F>, ROWS>(weight, weight_layout(params), first, rows);
        const GemvPlace at = { thread_index, n_simd_groups * SIMD_WIDTH, lane };
        dot_shared_spans<F, ROWS>(rows, x_row, matmul_k(params.K), at, stage, sums);
    } else {
        typename F::Row rows[ROWS];
        take_rows<F, ROWS>(weight, weight_layout(params), first, rows);
        dot_rows<F, ROWS>(rows, DeviceX{ x_row }, uint2(0, matmul_k(params.K)), lane, sums);
    }

    device float *y_row = y + ulong(group.y) * params.ldc;
    for (uint r = 0; r < ROWS; r++) {
        const float product = simd_sum(sums[r]);
        if (lane == r && first + r < params.N) {
            store_product(y_row + first + r, product, params);
        }
    }
}
