// Products of a few rows with up to three weights (N, K) of one format, on NVIDIA's tensor cores:
//
//     y[m][n] = scale[m] * sum_k x[m][k] * weight[n][k] + beta * y[m][n]
//
// x is in halves with a factor for each row, in tiles (convert/half_rows.metal); weights are rounded to halves, sums are floats.
//
// A SIMD group has 16 or 32 outputs, which are the rows of one or two left matrices; rows of x are the columns of the right one, 8
// to a tile. A sum over K may take it in any order, if both sides have the same one. Here the lane at row g and place t of a matrix
// (<akunu_tensor>) has span t of every four, the 32 weights of outputs g and g + 8, and product s of eight takes
//
//     columns 2 t, 2 t + 1          values 4 s, 4 s + 1 of span t
//     columns 2 t + 8, 2 t + 9      values 4 s + 2, 4 s + 3
//
// so that a lane decodes whole spans, and tiles of x are laid out to be read by vectors that follow each other.
//
// Launch:  grid (ceil(M / (8 * TILES)), the sum over the weights of ceil(N / (outputs * columns)), n_parts), threadgroups of
//          (32 * columns, splits) threads, four SIMD groups. Those of a column have the same outputs and take turns at the steps of
//          K with each other and with the other parts; their sums meet in threadgroup memory. Parts meet in device memory: the
//          last to arrive adds them up, always in the same order. `arrived` counts: zeros before, and zeros after.
// Memory:  every weight is read once for 8 * TILES rows. A SIMD group copies the bytes of a step to threadgroup memory by vectors
//          that follow each other, two steps ahead and the first ones before x is there. A row is copied from the last multiple of
//          16 bytes on, so that rows and steps may begin anywhere. Quads of x are copied two ahead, once for all columns.
#pragma once

#include "include/few_rows.h"
#include "include/inputs.h"
#include "include/reduce.h"
#include "include/shared_sums.h"
#include "include/staged_rows.h"

// SIMD groups of a threadgroup.
constant constexpr uint TEAM = 4;

// The outputs of a SIMD group times TILES tiles of x.
template <typename F, uint TILES>
kernel void shared_gemm(
    device const half *x                [[buffer(0)]],  // (M, K) in tiles, rows lda apart
    device const uchar *weight_0        [[buffer(1)]],  // (N0, K)
    device const uchar *weight_1        [[buffer(2)]],  // (N1, K)
    device const uchar *weight_2        [[buffer(3)]],  // (N2, K)
    device float *y_0                   [[buffer(4)]],  // (M, N0)
    device float *y_1                   [[buffer(5)]],  // (M, N1)
    device float *y_2                   [[buffer(6)]],  // (M, N2)
    constant DecodeGemmParams &params   [[buffer(7)]],
    device const float *scale           [[buffer(8)]],  // (M)
    device float *parts                 [[buffer(9)]],  // (n_parts, N0 + N1 + N2, M in whole tiles)
    device uint *arrived                [[buffer(10)]],  // (threadgroups of a part)
    threadgroup uint4 *memory           [[threadgroup(0)]],
    uint3 group                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint2 threads                       [[threads_per_threadgroup]]
) {
    typedef StagedStep<F> Step;
    constexpr uint MATRICES = Step::MATRICES;
    constexpr uint SUMS = MATRICES * TILES;
    static_assert(SUMS * SIMD_WIDTH <= Step::STAGES * Step::STAGE, "sums take the place of the weights");
    nvidia::small_threadgroups<TILES <= 2 ? 4 : TILES <= 4 ? 3 : 2>();

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
    const ChosenWeight chosen = choose_weight(params, group.y, Step::OUTPUTS * n_columns);
    const uint first_n = (chosen.group * n_columns + column) * Step::OUTPUTS;
    const uint first_m = group.x * TILES * X_ROWS;
    // The first step of this SIMD group, from one to the next, and how many everyone has, at most.
    const uint first_step = group.z + split * params.n_parts;
    const uint stride = n_splits * params.n_parts;
    const uint n_rounds = (n_steps + stride - 1) / stride;

    nvidia::AsyncCopies copies;
    StagedRows<F> rows;
    rows.ring = memory + n_splits * X_STAGES * StagedTiles<TILES>::STAGE + simd_group * Step::STAGES * Step::STAGE;
    rows.lane = lane;
    rows.begin(pick(chosen.index, weight_0, weight_1, weight_2), chosen.n, first_n, n_spans);
#pragma unroll(1)
    for (uint i = 0; i < Step::STAGES; i++) {
        rows.copy(first_step + i * stride, n_steps, i, copies);
    }
    inputs_are_ready();

    StagedTiles<TILES> tiles;
    tiles.ring = memory + split * X_STAGES * StagedTiles<TILES>::STAGE;
    tiles.first = (device const uint4 *)x + ulong(first_m) * params.lda / 8;
    tiles.tile_vectors = params.lda;
    tiles.last_tile = min(TILES, (params.M - first_m + X_ROWS - 1) / X_ROWS) - 1;
    tiles.n_quads = (n_spans + QUAD - 1) / QUAD;
    tiles.lane = lane;
    tiles.column = column;
    tiles.n_columns = n_columns;
#pragma unroll
    for (uint i = 0; i < X_AHEAD; i++) {
        tiles.copy((first_step + i / Step::QUADS * stride) * Step::QUADS + i % Step::QUADS, i, copies);
        copies.commit();
    }

    LaneSums<MATRICES, TILES> mine;
    mine.m = first_m + 2 * t;
    mine.n = first_n + g;
    mine.n_rows = params.M;
    mine.n_outputs = chosen.n;
    mine.clear();
    // Where the rows of this lane begin, counted from whole vectors.
    uint begins[MATRICES][2];
#pragma unroll
    for (uint j = 0; j < MATRICES; j++) {
        begins[j][0] = rows.place(j * MATRIX_OUTPUTS + g, 0);
        begins[j][1] = rows.place(j * MATRIX_OUTPUTS + g + 8, 0);
    }
    uint x_stage = 0;
    uint stage_index = 0;
    uint step = first_step;
    for (uint round = 0; round < n_rounds; round++) {
#pragma unroll(1)
        for (uint quad = 0; quad < Step::QUADS; quad++) {
            // All but the last quads under way are there, for everyone, and everyone has left the quad before.
            copies.wait<X_AHEAD - 1>();
            threadgroup_barrier(mem_flags::mem_threadgroup);
            const uint first_span = step * Step::SPANS + quad * QUAD;
            const bool exists = first_span + t < n_spans;
            threadgroup const uint4 *stage = rows.ring + stage_index * Step::STAGE;
            LaneSpan<F> upper[MATRICES];
            LaneSpan<F> lower[MATRICES];
            if (first_span < n_spans) {
#pragma unroll
                for (uint j = 0; j < MATRICES; j++) {
                    const uint row = j * MATRIX_OUTPUTS + g;
                    upper[j].load(stage + row * Step::VECTORS, begins[j][0] + step * Step::BYTES, quad * QUAD + t, exists);
                    lower[j].load(stage + (row + 8) * Step::VECTORS, begins[j][1] + step * Step::BYTES, quad * QUAD + t, exists);
                }
            }
            if (quad == 0 && round > 0) {
                const uint left_stage = stage_index == 0 ? Step::STAGES - 1 : stage_index - 1;
                rows.copy(step + (Step::STAGES - 1) * stride, n_steps, left_stage, copies);
            }
            const uint left_x_stage = x_stage == 0 ? X_STAGES - 1 : x_stage - 1;
            const uint ahead = quad + X_AHEAD;
            tiles.copy((step + ahead / Step::QUADS * stride) * Step::QUADS + ahead % Step::QUADS, left_x_stage, copies);
            copies.commit();

            if (first_span < n_spans) {
                threadgroup const uint4 *right_side = tiles.ring + x_stage * StagedTiles<TILES>::STAGE + lane;
#pragma unroll
                for (uint r = 0; r < SPAN_RUNS; r++) {
                    uint4 a[MATRICES];
                    uint4 b[MATRICES];
#pragma unroll
                    for (uint j = 0; j < MATRICES; j++) {
                        if (r % 2 == 0) {
                            upper[j].fetch(r / 2);
                            lower[j].fetch(r / 2);
                        }
                        a[j] = upper[j].run(r);
                        b[j] = lower[j].run(r);
                    }
#pragma unroll
                    for (uint i = 0; i < TILES; i++) {
                        const uint4 right = right_side[i * QUAD_VECTORS + r * SIMD_WIDTH];
#pragma unroll
                        for (uint j = 0; j < MATRICES; j++) {
                            const uint4 first_left = uint4(a[j].x, b[j].x, a[j].y, b[j].y);
                            const uint4 second_left = uint4(a[j].z, b[j].z, a[j].w, b[j].w);
                            mine.sums[j][i] = nvidia::multiply_accumulate(first_left, right.xy, mine.sums[j][i]);
                            mine.sums[j][i] = nvidia::multiply_accumulate(second_left, right.zw, mine.sums[j][i]);
                        }
                    }
                }
            }
            x_stage = x_stage + 1 == X_STAGES ? 0 : x_stage + 1;
        }
        step += stride;
        stage_index = stage_index + 1 == Step::STAGES ? 0 : stage_index + 1;
    }

    // Not before: the threadgroups of the next kernel would crowd on the cores that this one leaves free.
    nvidia::next_may_begin();
    const RowFactors<TILES> factors = mine.factors(scale);

    // The sums of the other splits go through threadgroup memory: every copy was waited for.
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (split > 0) {
#pragma unroll
        for (uint i = 0; i < SUMS; i++) {
            rows.ring[i * SIMD_WIDTH + lane] = as_type<uint4>(mine.sums[i / TILES][i % TILES]);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (split == 0) {
        for (uint other = 1; other < n_splits; other++) {
            threadgroup const uint4 *share = rows.ring + other * n_columns * Step::STAGES * Step::STAGE;
#pragma unroll
            for (uint i = 0; i < SUMS; i++) {
                mine.sums[i / TILES][i % TILES] += as_type<float4>(share[i * SIMD_WIDTH + lane]);
            }
        }
    }
    if (split == 0) {
        mine.scale(factors);
    }
    // Nobody reads x any more.
    const SumsPlace to = { pick(chosen.index, y_0, y_1, y_2), parts, arrived, (threadgroup uint *)memory };
    store_shared(mine, split == 0, params, chosen, to, group, thread_index);
}
