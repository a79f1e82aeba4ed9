// Products of many rows with up to three weights (N, K) of one format, by the asynchronous products of compute capability 9.0:
//
//     y[m][n] = scale[m] * sum_k x[m][k] * weight[n][k] + beta * y[m][n]
//
// Formula, weights and what a lane decodes are as in shared_gemm.h: outputs are the rows of the left matrix, 16 of them a SIMD
// group's, and rows of x the columns of the right one. But the right one stays in threadgroup memory, where tensor cores read it
// themselves, and a lane decodes the next weights while they do. x lies in columns of tiles (convert/half_rows.metal), so that
// what is multiplied at once lies together.
//
// Launch:  grid (ceil(M / (8 * TILES)), the sum over the weights of ceil(N / (16 * columns)), n_parts), threadgroups of (32 * columns,
//          splits) threads: columns of SIMD groups, four or eight, share x; splits, one or, of up to 64 rows, two, have the same
//          outputs. Parts take turns at the steps of K, and splits at those of their part. The sums of splits meet in threadgroup
//          memory, those of parts in device memory (shared_sums.h).
// Memory:  every weight is read once for 8 * TILES rows. SIMD groups copy their weights of later steps, and ask for later quads of
//          x, a tile each, while they multiply a quad. One barrier for each quad.
#pragma once

#include "include/inputs.h"
#include "include/reduce.h"
#include "include/shared_sums.h"
#include "include/staged_rows.h"

// Vectors of a tile of x that are multiplied at once: 16 of K.
constant constexpr uint PRODUCT_VECTORS = X_ROWS * 2;

// The tiles of x of a threadgroup: a ring of quads of them, and when each has arrived.
template <uint TILES>
struct ArrivingTiles {
    static constant constexpr uint STAGE = TILES * QUAD_VECTORS;
    threadgroup uint4 *ring;
    threadgroup nvidia::Arrival *arrivals;  // of the stages
    device const uint4 *first;
    uint tile_vectors;  // from one tile to the next
    uint last_tile;
    uint n_quads;
    uint column;  // of the SIMD groups: each asks for every n_columns-th tile
    uint n_columns;
    bool is_asking;  // one lane of each SIMD group that has a tile
    uint n_own;      // tiles that this thread asks for

    // Asks for a quad, if there is such a quad. Tiles that are not there are the last one again: what is multiplied with them is not
    // stored.
    void copy(uint quad, uint stage, thread nvidia::BulkCopies &copies) {
        if (quad >= n_quads || !is_asking) {
            return;
        }
        copies.announce(arrivals + stage, n_own * QUAD_VECTORS);
#pragma unroll(1)
        for (uint tile = column; tile < TILES; tile += n_columns) {
            device const uint4 *from = first + min(tile, last_tile) * tile_vectors + quad * QUAD_VECTORS;
            copies.copy(ring + stage * STAGE + tile * QUAD_VECTORS, from, QUAD_VECTORS, arrivals + stage);
        }
    }
};

template <typename F, uint TILES>
kernel void async_gemm(
    device const half *x                [[buffer(0)]],  // (M, K) in columns of tiles, rows lda apart
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
    typedef StagedRows<F, MATRIX_OUTPUTS> Rows;
    typedef ArrivingTiles<TILES> Tiles;

    const uint lane = thread_index % SIMD_WIDTH;
    const uint simd_group = thread_index / SIMD_WIDTH;
    const uint n_columns = threads.x / SIMD_WIDTH;
    const uint n_splits = TILES <= 8 ? threads.y : 1;
    // All lanes have the same: what depends on it can be in registers that they share.
    const uint split = TILES <= 8 ? simd_broadcast(simd_group / n_columns, 0) : 0;
    const uint column = simd_group - split * n_columns;
    // Quads of x that are copied while one is multiplied. The weights of a step are asked for no later than its first quad.
    const uint quads_ahead = TILES <= 8 && n_splits == 1 ? 2 : 1;
    const uint steps_ahead = (quads_ahead + Step::QUADS - 1) / Step::QUADS;
    const uint w_stages = steps_ahead + 1;
    const uint x_ring = quads_ahead + 1;
    const uint g = lane / 4;
    const uint t = lane % 4;
    const uint n_spans = params.K / SPAN;
    const uint n_steps = (n_spans + Step::SPANS - 1) / Step::SPANS;
    const ChosenWeight chosen = choose_weight(params, group.y, MATRIX_OUTPUTS * n_columns);
    const uint first_n = (chosen.group * n_columns + column) * MATRIX_OUTPUTS;
    const uint first_m = group.x * TILES * X_ROWS;
    // A part has every n_parts-th step, and a split every n_turns-th. The first split has as many as any.
    const uint n_turns = params.n_parts * n_splits;
    const uint first_step = group.z + split * params.n_parts;
    const uint n_own_steps = (n_steps - min(group.z, n_steps) + n_turns - 1) / n_turns;

    nvidia::AsyncCopies copies;
    Rows rows;
    threadgroup uint4 *behind_x = memory + n_splits * x_ring * Tiles::STAGE;
    rows.ring = behind_x + simd_group * w_stages * Rows::STAGE;
    rows.lane = lane;
    rows.begin(pick(chosen.index, weight_0, weight_1, weight_2), chosen.n, first_n, n_spans);
#pragma unroll(1)
    for (uint i = 0; i < w_stages; i++) {
        rows.copy(first_step + i * n_turns, n_steps, i, copies);
    }
    nvidia::BulkCopies bulk;
    Tiles tiles;
    threadgroup nvidia::Arrival *arrivals =
        (threadgroup nvidia::Arrival *)(behind_x + n_splits * n_columns * w_stages * Rows::STAGE);
    if (thread_index < n_splits * x_ring) {
        bulk.prepare(arrivals + thread_index, min(n_columns, TILES));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    inputs_are_ready();

    bulk.begin();
    tiles.ring = memory + split * x_ring * Tiles::STAGE;
    tiles.arrivals = arrivals + split * x_ring;
    tiles.first = (device const uint4 *)x + ulong(first_m) * params.lda / 8;
    tiles.tile_vectors = params.lda;
    tiles.last_tile = min(TILES, (params.M - first_m + X_ROWS - 1) / X_ROWS) - 1;
    tiles.n_quads = (n_spans + QUAD - 1) / QUAD;
    tiles.column = column;
    tiles.n_columns = n_columns;
    tiles.is_asking = lane == 0 && column < TILES;
    tiles.n_own = tiles.is_asking ? (TILES - 1 - column) / n_columns + 1 : 0;
#pragma unroll(1)
    for (uint i = 0; i < quads_ahead; i++) {
        tiles.copy((first_step + i / Step::QUADS * n_turns) * Step::QUADS + i % Step::QUADS, i, bulk);
        copies.commit();
    }

    LaneSums<1, TILES> mine;
    mine.m = first_m + 2 * t;
    mine.n = first_n + g;
    mine.n_rows = params.M;
    mine.n_outputs = chosen.n;
    mine.clear();
    nvidia::AsyncProducts products;
    const uint begins[2] = { rows.place(g, 0), rows.place(g + 8, 0) };
    uint x_stage = 0;
    uint x_phase = 0;
    uint w_stage = 0;
    uint step = first_step;
    for (uint own_step = 0; own_step < n_own_steps; own_step++) {
#pragma unroll
        for (uint quad = 0; quad < Step::QUADS; quad++) {
            const uint first_span = step * Step::SPANS + quad * QUAD;
            // The quad is there for every column of the split, and all have left the one before.
            if (quads_ahead == 2) {
                copies.wait<1>();
            } else {
                copies.wait<0>();
            }
            if (first_span < n_spans) {
                bulk.wait(tiles.arrivals + x_stage, x_phase);
            }
            if (n_splits > 1) {
                nvidia::team_barrier(split, threads.x);
            } else {
                threadgroup_barrier(mem_flags::mem_threadgroup);
            }
            threadgroup const uint4 *stage = rows.ring + w_stage * Rows::STAGE;
            LaneSpan<F> upper;
            LaneSpan<F> lower;
            const bool exists = first_span + t < n_spans;
            upper.load(stage + g * Step::VECTORS, begins[0] + step * Step::BYTES, quad * QUAD + t, exists);
            lower.load(stage + (g + 8) * Step::VECTORS, begins[1] + step * Step::BYTES, quad * QUAD + t, exists);
            if (quad == 0 && own_step > 0) {
                const uint left_stage = w_stage == 0 ? w_stages - 1 : w_stage - 1;
                rows.copy(step + steps_ahead * n_turns, n_steps, left_stage, copies);
            }
            const uint left_x_stage = x_stage == 0 ? quads_ahead : x_stage - 1;
            const uint ahead = quad + quads_ahead;
            const uint ahead_step = step + ahead / Step::QUADS * n_turns;
            tiles.copy(ahead_step * Step::QUADS + ahead % Step::QUADS, left_x_stage, bulk);
            copies.commit();

            if (first_span < n_spans) {
                threadgroup const uint4 *right = tiles.ring + x_stage * Tiles::STAGE;
#pragma unroll
                for (uint r = 0; r < SPAN_RUNS; r++) {
                    if (r % 2 == 0) {
                        upper.fetch(r / 2);
                        lower.fetch(r / 2);
                    }
                    const uint4 a = upper.run(r);
                    const uint4 b = lower.run(r);
                    products.begin();
                    products.multiply<QUAD_VECTORS>(mine.sums[0], uint4(a.x, b.x, a.y, b.y), right, 2 * r * PRODUCT_VECTORS);
                    products.multiply<QUAD_VECTORS>(mine.sums[0], uint4(a.z, b.z, a.w, b.w), right, (2 * r + 1) * PRODUCT_VECTORS);
                    products.commit();
                    if (r + 1 < SPAN_RUNS) {
                        products.wait<1>(mine.sums[0]);
                    } else {
                        products.wait<0>(mine.sums[0]);
                    }
                }
            }
            x_phase ^= x_stage == quads_ahead ? 1 : 0;
            x_stage = x_stage == quads_ahead ? 0 : x_stage + 1;
        }
        step += n_turns;
        w_stage = w_stage + 1 == w_stages ? 0 : w_stage + 1;
    }

    // Not before: the threadgroups of the next kernel would crowd on the cores that this one leaves free.
    nvidia::next_may_begin();
    const RowFactors<TILES> factors = mine.factors(scale);
    // Sums take the place of x, behind a number.
    threadgroup uint4 *left = memory + 1 + column * TILES * SIMD_WIDTH + lane;
    if (n_splits > 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (split > 0) {
#pragma unroll
            for (uint i = 0; i < TILES; i++) {
                left[i * SIMD_WIDTH] = as_type<uint4>(mine.sums[0][i]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (split == 0) {
#pragma unroll
            for (uint i = 0; i < TILES; i++) {
                mine.sums[0][i] += as_type<float4>(left[i * SIMD_WIDTH]);
            }
        }
    }
    mine.scale(factors);
    const SumsPlace to = { pick(chosen.index, y_0, y_1, y_2), parts, arrived, (threadgroup uint *)memory };
    store_shared(mine, split == 0, params, chosen, to, group, thread_index);
}
