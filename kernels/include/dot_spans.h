// Dot products of a vector with several rows of a weight matrix, in spans of 32 (format/span.h), by SIMD groups that share
// the rows and split K: of every n steps of 1024 values a SIMD group of n takes one.
//
// Memory:  every weight is read once, those of all rows before the first is used. x is read once for ROWS outputs (from
//          cache), each vector of 16 bytes by the next lane, and reaches the lane whose span it belongs to through
//          threadgroup memory. x begins at a multiple of 16 bytes.
#pragma once

#include "include/dot_rows.h"
#include "include/format/all.h"
#include "include/inputs.h"

// Most SIMD groups of a threadgroup.
constant constexpr uint MAX_SPLIT = 4;
// Floats from one span of x to the next: the spans of 8 lanes fall into different banks.
constant constexpr uint SPAN_STRIDE = SPAN + 4;
constant constexpr uint SPAN_VECTORS = SPAN / 4;
// Vectors of x that a SIMD group stages: a span for each lane.
constant constexpr uint STAGE_VECTORS = SIMD_WIDTH * SPAN_STRIDE / 4;

// The sum of a span's weights times x. `x` has SPAN_VECTORS vectors.
template <typename F>
inline float dot_span(thread const typename Spans<F>::Span &span, threadgroup const float4 *x) {
    float sum = 0.0f;
#pragma unroll
    for (uint r = 0; r < SPAN_RUNS; r++) {
        sum += dot_run<F>(Spans<F>::run(span, r), x_run(x[2 * r], x[2 * r + 1]));
    }
    return sum;
}

// What one SIMD group does: its place, and the threadgroup memory that it stages x in.
struct SplitPlace {
    uint simd_group;
    uint n_simd_groups;
    uint lane;
    threadgroup float4 *stage;
};

// Adds to sums[r] this lane's share of sum_k row_r[k] * x[k] over the steps of this SIMD group. All lanes must call it.
template <typename F, uint ROWS, typename X>
inline void dot_spans(
    thread typename Spans<F>::Row (&rows)[ROWS], thread X &x, uint K, SplitPlace at, thread float (&sums)[ROWS]
) {
    const uint n_spans = K / SPAN;
    for (uint first = at.simd_group * SIMD_WIDTH; first < n_spans; first += at.n_simd_groups * SIMD_WIDTH) {
        const uint count = min(n_spans - first, SIMD_WIDTH);
        const uint mine = first + min(at.lane, count - 1);
        typename Spans<F>::Span spans[ROWS];
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            spans[r] = Spans<F>::load(rows[r], mine);
        }
        inputs_are_ready();
        simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint i = 0; i < SPAN_VECTORS; i++) {
            const uint vector = i * SIMD_WIDTH + at.lane;
            if (vector < count * SPAN_VECTORS) {
                const uint place = vector / SPAN_VECTORS * (SPAN_STRIDE / 4) + vector % SPAN_VECTORS;
                at.stage[place] = x.vector(first * SPAN_VECTORS + vector);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (at.lane < count) {
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                sums[r] += dot_span<F>(spans[r], at.stage + at.lane * (SPAN_STRIDE / 4));
            }
        }
    }
}

// The same for plain numbers behind the last whole span, fewer than 32.
template <typename F, uint ROWS, typename X>
inline void dot_rest(thread typename F::Row (&rows)[ROWS], thread X &x, uint K, uint lane, thread float (&sums)[ROWS]) {
    inputs_are_ready();
    const uint i = K / SPAN * SPAN + lane;
    if (F::BLOCK == 1 && i < K) {
        const float value = x.value(i);
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            sums[r] += F::value(rows[r], i) * value;
        }
    }
}

// sums[r] of all lanes to shares[simd_group * STRIDE + r].
template <uint ROWS, uint STRIDE>
inline void leave_shares(thread float (&sums)[ROWS], threadgroup float *shares, SplitPlace at) {
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const float sum = simd_sum(sums[r]);
        if (at.lane == r) {
            shares[at.simd_group * STRIDE + r] = sum;
        }
    }
}
