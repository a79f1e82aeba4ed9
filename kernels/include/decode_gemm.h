// Products of a few rows with up to three weights (N, K) of one format, on NVIDIA's tensor cores:
//
//     y[m][n] = scale[m] * sum_k x[m][k] * weight[n][k] + beta * y[m][n]
//
// x is in halves with a factor for each row, in tiles (convert/half_rows.metal); weights are rounded to halves, sums are floats.
//
// A SIMD group has 16 outputs, which are the rows of the left matrix; rows of x are the columns of the right one, 8 to a tile. A
// sum over K may take it in any order, if both sides have the same one. Here the lane at row g and place t of a matrix
// (<akunu_tensor>) has span t of every four, the 32 weights of outputs g and g + 8, and product s of eight takes
//
//     columns 2 t, 2 t + 1          values 4 s, 4 s + 1 of span t
//     columns 2 t + 8, 2 t + 9      values 4 s + 2, 4 s + 3
//
// so that a lane decodes whole spans, and tiles of x are laid out to be read by vectors that follow each other.
//
// Launch:  grid (ceil(M / 16), the sum over the weights of ceil(N / (16 * columns))), threadgroups of (32 * columns, splits) threads, up to
//          TEAM SIMD groups. Those of a column have the same outputs and take turns at the steps of K; their sums meet in
//          threadgroup memory.
// Memory:  every weight is read once for 16 rows. A SIMD group copies the bytes of a step, 16 rows of them, to threadgroup
//          memory by vectors that follow each other, two steps ahead, and the first two before x is there; nobody else waits for
//          it. A row is copied from the last multiple of 16 bytes on, so that rows and steps may begin anywhere.
#pragma once

#include "include/inputs.h"
#include "include/lane_sums.h"
#include "include/reduce.h"
#include "include/staged_rows.h"

// Steps that are under way at once.
constant constexpr uint STAGES = 2;
// Tiles of x of a threadgroup.
constant constexpr uint TILES = 2;

// The vectors of x that a lane will need next, a quad of each tile.
struct XAhead {
    device const uint4 *first[TILES];  // where there is no second tile, the first again: its sums are not stored
    uint last_quad;
    uint4 vectors[TILES][SPAN_RUNS];

    // Run r of a quad, in place of the run r that was multiplied. Behind the last quad comes the last again, and nobody uses it.
    void load(uint r, uint quad) {
        const uint at = min(quad, last_quad) * QUAD_VECTORS + r * SIMD_WIDTH;
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            vectors[i][r] = first[i][at];
        }
    }
};

// The weights of 16 outputs times two tiles of x, summed by the SIMD groups of a column.
template <typename F>
kernel void decode_gemm(
    device const half *x                [[buffer(0)]],  // (M, K) in tiles, rows lda apart
    device const uchar *weight_0        [[buffer(1)]],  // (N0, K)
    device const uchar *weight_1        [[buffer(2)]],  // (N1, K)
    device const uchar *weight_2        [[buffer(3)]],  // (N2, K)
    device float *y_0                   [[buffer(4)]],  // (M, N0)
    device float *y_1                   [[buffer(5)]],  // (M, N1)
    device float *y_2                   [[buffer(6)]],  // (M, N2)
    constant DecodeGemmParams &params   [[buffer(7)]],
    device const float *scale           [[buffer(8)]],  // (M)
    uint2 group                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint2 threads                       [[threads_per_threadgroup]]
) {
    typedef StagedStep<F> Step;
    typedef StagedRows<F, MATRIX_OUTPUTS> Rows;
    // Most SIMD groups of a threadgroup.
    constexpr uint TEAM = Step::VECTORS <= 11 ? 8 : 4;
    constexpr uint RING = STAGES * Rows::STAGE;
    threadgroup uint4 memory[TEAM * RING];
    static_assert(sizeof(memory) <= 48 * 1024, "threadgroup memory");
    static_assert(TILES * SIMD_WIDTH <= RING, "sums take the place of the weights");

    const uint lane = thread_index % SIMD_WIDTH;
    const uint simd_group = thread_index / SIMD_WIDTH;
    const uint n_columns = threads.x / SIMD_WIDTH;
    const uint n_splits = threads.y;
    const uint column = simd_group % n_columns;
    const uint split = simd_group / n_columns;
    const uint g = lane / 4;
    const uint t = lane % 4;
    const uint n_spans = params.K / SPAN;
    const uint n_steps = (n_spans + Step::SPANS - 1) / Step::SPANS;
    const ChosenWeight chosen = choose_weight(params, group.y, n_columns * MATRIX_OUTPUTS);
    const uint first_n = (chosen.group * n_columns + column) * MATRIX_OUTPUTS;
    const uint first_m = group.x * TILES * X_ROWS;

    nvidia::AsyncCopies copies;
    Rows rows;
    rows.ring = memory + simd_group * RING;
    rows.lane = lane;
    rows.begin(pick(chosen.index, weight_0, weight_1, weight_2), chosen.n, first_n, n_spans);
#pragma unroll(1)
    for (uint i = 0; i < STAGES; i++) {
        rows.copy(split + i * n_splits, n_steps, i, copies);
        copies.commit();
    }
    inputs_are_ready();

    XAhead ahead;
    ahead.first[0] = (device const uint4 *)x + ulong(first_m) * params.lda / 8 + lane;
    ahead.first[1] = ahead.first[0] + (first_m + X_ROWS < params.M ? params.lda : 0);
    ahead.last_quad = (n_spans + QUAD - 1) / QUAD - 1;
#pragma unroll
    for (uint r = 0; r < SPAN_RUNS; r++) {
        ahead.load(r, split * Step::QUADS);
    }

    // Two sums of each tile, so that a product need not wait for the one before it.
    LaneSums<2, TILES> both;
    both.clear();
    const uint begins[2] = { rows.place(g, 0), rows.place(g + 8, 0) };
    uint stage_index = 0;
    for (uint step = split; step < n_steps; step += n_splits) {
        // Nobody else waits for what this SIMD group copies.
        copies.wait<STAGES - 1>();
        simdgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup const uint4 *stage = rows.ring + stage_index * Rows::STAGE;
#pragma unroll
        for (uint quad = 0; quad < Step::QUADS; quad++) {
            // Spans behind the last are zeros.
            const uint first_span = step * Step::SPANS + quad * QUAD;
            const bool exists = first_span + t < n_spans;
            LaneSpan<F> upper;
            LaneSpan<F> lower;
            upper.load(stage + g * Step::VECTORS, begins[0] + step * Step::BYTES, quad * QUAD + t, exists);
            lower.load(stage + (g + 8) * Step::VECTORS, begins[1] + step * Step::BYTES, quad * QUAD + t, exists);
            const uint next_quad = quad + 1 < Step::QUADS ? step * Step::QUADS + quad + 1 : (step + n_splits) * Step::QUADS;
#pragma unroll
            for (uint r = 0; r < SPAN_RUNS; r++) {
                if (r % 2 == 0) {
                    upper.fetch(r / 2);
                    lower.fetch(r / 2);
                }
                const uint4 a = upper.run(r);
                const uint4 b = lower.run(r);
#pragma unroll
                for (uint i = 0; i < TILES; i++) {
                    const uint4 right = ahead.vectors[i][r];
                    both.sums[0][i] = nvidia::multiply_accumulate(uint4(a.x, b.x, a.y, b.y), right.xy, both.sums[0][i]);
                    both.sums[1][i] = nvidia::multiply_accumulate(uint4(a.z, b.z, a.w, b.w), right.zw, both.sums[1][i]);
                }
                ahead.load(r, next_quad);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        rows.copy(step + STAGES * n_splits, n_steps, stage_index, copies);
        copies.commit();
        stage_index = (stage_index + 1) % STAGES;
    }

    LaneSums<1, TILES> mine;
    mine.m = first_m + 2 * t;
    mine.n = first_n + g;
    mine.n_rows = params.M;
    mine.n_outputs = chosen.n;
#pragma unroll
    for (uint i = 0; i < TILES; i++) {
        mine.sums[0][i] = both.sums[0][i] + both.sums[1][i];
    }
    // The sums of the other splits go through threadgroup memory: every copy was waited for.
    if (split > 0) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            rows.ring[i * SIMD_WIDTH + lane] = as_type<uint4>(mine.sums[0][i]);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (split > 0) {
        return;
    }
    for (uint other = 1; other < n_splits; other++) {
        threadgroup const uint4 *share = rows.ring + other * n_columns * RING;
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            mine.sums[0][i] += as_type<float4>(share[i * SIMD_WIDTH + lane]);
        }
    }
    mine.scale(scale);
    device float *y = pick(chosen.index, y_0, y_1, y_2);
    if (params.beta != 0.0f) {
        mine.add_before(y, params.beta);
    }
    mine.store(y);
}
