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
// Launch:  grid (ceil(M / (8 * TILES)), the sum over the weights of ceil(N / (16 * columns))), threadgroups of (32 * columns,
//          splits) threads, up to eight SIMD groups. Those of a column have the same outputs and take turns at the steps of K; their
//          sums meet in threadgroup memory.
// Memory:  every weight is read once for 8 * TILES rows. A SIMD group copies the bytes of a step, 16 rows of them, to threadgroup
//          memory by vectors that follow each other, two steps ahead, and the first two before x is there; nobody else waits for
//          it. A row is copied from the last multiple of 16 bytes on, so that rows and steps may begin anywhere.
#pragma once

#include "include/inputs.h"
#include "include/lane_sums.h"
#include "include/reduce.h"
#include "include/staged_rows.h"

// The vectors of x that a lane will need next, RUNS of each tile: of a quad, or of half a quad.
template <uint TILES, uint RUNS>
struct XAhead {
    device const uint4 *first[TILES];  // where there is no such tile, the last again: its sums are not stored
    uint n_quads;
    uint4 vectors[TILES][RUNS];

    // Of n_tiles tiles, each tile_vectors behind the one before.
    void begin(device const uint4 *x, uint tile_vectors, uint n_tiles) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            first[i] = x + min(i, n_tiles - 1) * tile_vectors;
        }
    }

    // Run r of a quad in place of the one that was multiplied RUNS before. Where there is no such quad, that one stays: what it is
    // multiplied with are zeros.
    void load(uint r, uint quad) {
        if (quad < n_quads) {
#pragma unroll
            for (uint i = 0; i < TILES; i++) {
                vectors[i][r % RUNS] = first[i][quad * QUAD_VECTORS + r * SIMD_WIDTH];
            }
        }
    }
};

// What a lane needs when its sums are complete.
template <uint TILES>
struct Completion {
    RowFactors<TILES> factors;
    LaneSums<1, TILES> before;  // what y holds, or zeros

    void load(LaneSums<1, TILES> mine, device const float *scale, device const float *y, float beta) {
        factors = mine.factors(scale);
        before = mine;
        if (beta != 0.0f) {
            before.load(y);
        } else {
            before.clear();
        }
    }
};

// The weights of 16 outputs times TILES tiles of x, summed by the SIMD groups of a column.
template <typename F, uint TILES>
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
    threadgroup uint4 *memory           [[threadgroup(0)]],
    uint2 group                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint2 threads                       [[threads_per_threadgroup]]
) {
    typedef StagedStep<F> Step;
    typedef StagedRows<F, MATRIX_OUTPUTS> Rows;
    // Steps that are under way at once.
    constexpr uint STAGES = 2;
    constexpr uint RING = STAGES * Rows::STAGE;
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

    LaneSums<1, TILES> mine;
    mine.m = first_m + 2 * t;
    mine.n = first_n + g;
    mine.n_rows = params.M;
    mine.n_outputs = chosen.n;
    // As much of x as there are registers for.
    constexpr uint RUNS = TILES <= 2 ? SPAN_RUNS : SPAN_RUNS / 2;
    XAhead<TILES, RUNS> ahead;
    const uint n_tiles = (params.M - first_m + X_ROWS - 1) / X_ROWS;
    ahead.begin((device const uint4 *)x + ulong(first_m) * params.lda / 8 + lane, params.lda, n_tiles);
    ahead.n_quads = (n_spans + QUAD - 1) / QUAD;
#pragma unroll
    for (uint r = 0; r < RUNS; r++) {
        ahead.load(r, split * Step::QUADS);
    }

    // The first split of a column completes its sums. What it needs for that is asked for early: before the products, or where there
    // are no registers for it, before the sums of the splits meet.
    constexpr bool IS_EARLY = TILES <= 2;
    device float *y = pick(chosen.index, y_0, y_1, y_2);
    Completion<TILES> completion;
    if (IS_EARLY && split == 0) {
        completion.load(mine, scale, y, params.beta);
    }

    // Two sums of each of two tiles, so that a product need not wait for the one before it.
    constexpr uint SUMS = TILES <= 2 ? 2 : 1;
    LaneSums<SUMS, TILES> all;
    all.clear();
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
            const uint this_quad = step * Step::QUADS + quad;
            const uint next_quad = quad + 1 < Step::QUADS ? this_quad + 1 : (step + n_splits) * Step::QUADS;
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
                    const uint4 right = ahead.vectors[i][r % RUNS];
                    all.sums[0][i] = nvidia::multiply_accumulate(uint4(a.x, b.x, a.y, b.y), right.xy, all.sums[0][i]);
                    all.sums[SUMS - 1][i] = nvidia::multiply_accumulate(uint4(a.z, b.z, a.w, b.w), right.zw, all.sums[SUMS - 1][i]);
                }
                const uint later = r + RUNS;
                ahead.load(later % SPAN_RUNS, later < SPAN_RUNS ? this_quad : next_quad);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        rows.copy(step + STAGES * n_splits, n_steps, stage_index, copies);
        copies.commit();
        stage_index = (stage_index + 1) % STAGES;
    }

    if (!IS_EARLY && split == 0) {
        completion.load(mine, scale, y, params.beta);
    }
#pragma unroll
    for (uint i = 0; i < TILES; i++) {
        mine.sums[0][i] = SUMS == 1 ? all.sums[0][i] : all.sums[0][i] + all.sums[SUMS - 1][i];
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
    mine.scale(completion.factors);
    mine.add(completion.before, params.beta);
    mine.store(y);
}
