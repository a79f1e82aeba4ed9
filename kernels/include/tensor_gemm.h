// Matrix product on NVIDIA's tensor cores, weights (N, K) in any format:
//
//     y[m][n] = alpha * scale[m] * sum_k x[m][k] * weight[n][k] + beta * y[m][n]
//
// x is in halves with a factor for each row (convert/half_rows.metal), weights are rounded to halves, sums are floats.
//
// Launch:  grid (ceil(M / TILE_M), ceil(N / TILE_N)): threadgroups that read the same weights follow each other. SPLIT
//          teams of 2 * TILE_N threads, of which each takes every SPLIT-th step of 64 of K; a team's SIMD groups lie
//          SIMD_M x SIMD_N side by side.
// Memory:  x and weights go to threadgroup memory in steps of 64 of K. Those of the next step are loaded into registers
//          before the products of this one, weights as they lie: a thread has a span of 32. A row of a tile has 8 vectors
//          of 16 bytes; vector c of row r lies at place c ^ r % 8, so that the 8 rows of a matrix fall into different
//          banks.
//
// Rows of x are lda halves long, a multiple of 8, and hold zeros from K on up to a multiple of 64.
#pragma once

#include <akunu_tensor>

#include "include/dot_rows.h"
#include "include/format/all.h"

constant constexpr uint STEP = 64;
constant constexpr uint STEP_VECTORS = STEP / 8;

inline uint pack(float a, float b) { return as_type<uint>(half2(half(a), half(b))); }

inline uint4 pack(float4 low, float4 high) {
    return uint4(pack(low.x, low.y), pack(low.z, low.w), pack(high.x, high.y), pack(high.z, high.w));
}

// Where vector c of row r of a tile lies.
inline uint vector_at(uint row, uint c) { return row * STEP_VECTORS + (c ^ row % 8); }

// Orders the threadgroup memory of a team. A team of one SIMD group waits for nobody else.
template <uint TEAM>
inline void team_barrier() {
    if (TEAM == SIMD_WIDTH) {
        simdgroup_barrier(mem_flags::mem_threadgroup);
    } else {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// One thread's share of the weights of a step: a span of a row of weights, loaded by the thread itself.
template <typename F, bool IS_STAGED = (StagedSpan<F>::BYTES > 0)>
struct WeightShare {
    static constant constexpr uint STAGE_WORDS = 1;  // none is used
    typename Spans<F>::Row row;
    typename F::Row plain;  // for the values behind the last whole span
    typename Spans<F>::Span span;
    uint k;  // where the loaded span begins
    uint n_k;

    void begin(device const uchar *weight, WeightLayout at, uint first_n, uint in_team, uint K) {
        const uint n = min(first_n + in_team / 2, at.n_rows - 1);
        row = Spans<F>::row(weight, at, n);
        plain = F::row(weight, at, n);
        n_k = K;
    }

    // The span of the step that begins at `from`.
    void load(uint from, uint in_team) {
        k = from + in_team % 2 * SPAN;
        if (k + SPAN <= n_k) {
            span = Spans<F>::load(row, k / SPAN);
        }
    }

    void unstage(threadgroup uint *, uint) {}

    // Vector r of the span, of which there are 4.
    uint4 vector(uint r) const {
        if (k + SPAN <= n_k) {
            const Run w = Spans<F>::run(span, r);
            return pack(low_values(w), high_values(w));
        }
        if (F::BLOCK > 1) {
            return uint4(0);
        }
        float values[RUN];
#pragma unroll
        for (uint i = 0; i < RUN; i++) {
            const uint at = k + RUN * r + i;
            values[i] = at < n_k ? F::value(plain, at) : 0.0f;
        }
        return uint4(
            pack(values[0], values[1]), pack(values[2], values[3]), pack(values[4], values[5]), pack(values[6], values[7])
        );
    }
};

// The same for spans of a few bytes: the 16 rows of a SIMD group are loaded word by word, neighbouring words of a row by
// neighbouring lanes, and each thread takes its span out of threadgroup memory. A step begins at a multiple of 4 bytes where
// rows are whole steps; others are read as above.
template <typename F>
struct WeightShare<F, true> {
    static constant constexpr uint BYTES = StagedSpan<F>::BYTES;
    static constant constexpr uint ROW_WORDS = STEP / SPAN * BYTES / 4;  // of a row and step
    static constant constexpr uint STAGE_WORDS = SIMD_WIDTH / 2 * ROW_WORDS;
    static constant constexpr uint LANE_WORDS = (STAGE_WORDS + SIMD_WIDTH - 1) / SIMD_WIDTH;
    typename Spans<F>::Row row;
    typename Spans<F>::Span span;
    device const uint *first_word;  // of the SIMD group's rows
    uint places[LANE_WORDS];        // of this lane's words, behind that
    uint words[LANE_WORDS];
    uint k;
    uint n_k;
    bool in_steps;

    void begin(device const uchar *weight, WeightLayout at, uint first_n, uint in_team, uint K) {
        row = Spans<F>::row(weight, at, min(first_n + in_team / 2, at.n_rows - 1));
        n_k = K;
        in_steps = at.row_len % STEP == 0 && K % STEP == 0;
        const uint first_row = min(first_n + in_team / SIMD_WIDTH * (SIMD_WIDTH / 2), at.n_rows - 1);
        const uint row_bytes = at.row_len / SPAN * BYTES;
        first_word = (device const uint *)(weight + (ulong(first_row) * row_bytes & ~3ul));
#pragma unroll
        for (uint i = 0; i < LANE_WORDS; i++) {
            const uint word = min(i * SIMD_WIDTH + in_team % SIMD_WIDTH, STAGE_WORDS - 1);
            const uint n = min(word / ROW_WORDS, at.n_rows - 1 - first_row);
            places[i] = n * (row_bytes / 4) + word % ROW_WORDS;
        }
    }

    void load(uint from, uint in_team) {
        k = from + in_team % 2 * SPAN;
        if (k + SPAN <= n_k) {
            if (in_steps) {
#pragma unroll
                for (uint i = 0; i < LANE_WORDS; i++) {
                    words[i] = first_word[places[i] + from / STEP * ROW_WORDS];
                }
            } else {
                span = Spans<F>::load(row, k / SPAN);
            }
        }
    }

    // Exchanges the words of a SIMD group. All lanes must call it.
    void unstage(threadgroup uint *stage, uint in_team) {
        if (!in_steps) {
            return;
        }
        const uint lane = in_team % SIMD_WIDTH;
        simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint i = 0; i < LANE_WORDS; i++) {
            if (i * SIMD_WIDTH + lane < STAGE_WORDS) {
                stage[i * SIMD_WIDTH + lane] = words[i];
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        span = Spans<F>::load(StagedRow{ stage + lane / 2 * ROW_WORDS, 0 }, lane % 2);
    }

    uint4 vector(uint r) const {
        if (k + SPAN > n_k) {
            return uint4(0);
        }
        const Run w = Spans<F>::run(span, r);
        return pack(low_values(w), high_values(w));
    }
};

// One thread's share of a tile of products: what it loads, and the sums of its SIMD group.
template <typename F, uint TILE_M, uint TILE_N, uint SIMD_M, uint SIMD_N, uint SPLIT>
struct TensorTile {
    static constant constexpr uint TEAM = SIMD_M * SIMD_N * SIMD_WIDTH;
    static constant constexpr uint ROWS = TILE_M / SIMD_M / 16;  // matrices of a SIMD group
    static constant constexpr uint COLUMNS = TILE_N / SIMD_N / 8;
    static constant constexpr uint X_VECTORS = TILE_M * STEP_VECTORS / TEAM;  // of a thread
    static constant constexpr uint VECTORS = (TILE_M + TILE_N) * STEP_VECTORS;
    static constant constexpr uint STAGE_WORDS = WeightShare<F>::STAGE_WORDS;
    static constant constexpr uint MEMORY = SPLIT * VECTORS;
    static constant constexpr uint STAGES = SPLIT * SIMD_M * SIMD_N * STAGE_WORDS;
    static_assert(TEAM == 2 * TILE_N, "a thread for each span of weights");
    static_assert(TILE_M * STEP_VECTORS % TEAM == 0, "threads share x evenly");
    static_assert(COLUMNS % 2 == 0, "matrices of weights are loaded in pairs");
    static_assert(SPLIT == 1 || VECTORS * 4 >= TILE_M * TILE_N, "sums take the place of the tiles");
    static_assert(MEMORY * 16 + STAGES * 4 <= 48 * 1024, "threadgroup memory");

    WeightShare<F> weights;
    uint w_row;                            // of the tile: where this thread's weights go
    device const half *x_rows[X_VECTORS];  // row x_row(i) from this thread's vector of a step on
    float4 sums[ROWS][COLUMNS];

    // Row i of those of x that this thread loads vector in_team % 8 of.
    static uint x_row(uint in_team, uint i) { return in_team / STEP_VECTORS + i * (TEAM / STEP_VECTORS); }
    static uint x_column(uint in_team) { return in_team % STEP_VECTORS * 8; }
    // Where the matrices of a SIMD group begin.
    static uint simd_m(uint in_team) { return in_team / SIMD_WIDTH / SIMD_N * ROWS * 16; }
    static uint simd_n(uint in_team) { return in_team / SIMD_WIDTH % SIMD_N * COLUMNS * 8; }

    // The sums of the team's steps.
    void multiply(threadgroup uint4 *memory, threadgroup uint *stages, uint K, uint thread_index) {
        const uint team = thread_index / TEAM;
        const uint in_team = thread_index % TEAM;
        const uint lane = thread_index % SIMD_WIDTH;
        threadgroup uint4 *x_tile = memory + team * VECTORS;
        threadgroup uint4 *w_tile = x_tile + TILE_M * STEP_VECTORS;
        threadgroup uint *stage = stages + thread_index / SIMD_WIDTH * STAGE_WORDS;
        // The row and the vector of a matrix that this lane points at.
        const uint left_row = simd_m(in_team) + lane % 16;
        const uint left_vector = lane / 16;
        const uint n_row = simd_n(in_team) + lane % 8 + lane / 16 * 8;
        const uint n_vector = lane / 8 % 2;

#pragma unroll
        for (uint i = 0; i < ROWS; i++) {
#pragma unroll
            for (uint j = 0; j < COLUMNS; j++) {
                sums[i][j] = float4(0.0f);
            }
        }

        uint4 xs[X_VECTORS];
        uint k = team * STEP;
        weights.load(k, in_team);
#pragma unroll
        for (uint i = 0; i < X_VECTORS; i++) {
            xs[i] = k < K ? *(device const uint4 *)(x_rows[i] + k) : uint4(0);
        }
        for (uint step = 0; step < K; step += SPLIT * STEP) {
#pragma unroll
            for (uint i = 0; i < X_VECTORS; i++) {
                x_tile[vector_at(x_row(in_team, i), in_team % STEP_VECTORS)] = xs[i];
            }
            weights.unstage(stage, in_team);
#pragma unroll
            for (uint r = 0; r < SPAN_RUNS; r++) {
                w_tile[vector_at(w_row, in_team % 2 * SPAN_RUNS + r)] = weights.vector(r);
            }
            team_barrier<TEAM>();

            k += SPLIT * STEP;
            weights.load(k, in_team);
#pragma unroll
            for (uint i = 0; i < X_VECTORS; i++) {
                xs[i] = k < K ? *(device const uint4 *)(x_rows[i] + k) : uint4(0);
            }

#pragma unroll
            for (uint c = 0; c < STEP_VECTORS; c += 2) {
                uint4 right[COLUMNS / 2];
#pragma unroll
                for (uint j = 0; j < COLUMNS / 2; j++) {
                    right[j] = nvidia::load_matrices(w_tile + vector_at(n_row + 16 * j, c + n_vector));
                }
#pragma unroll
                for (uint i = 0; i < ROWS; i++) {
                    const uint4 left = nvidia::load_matrices(x_tile + vector_at(left_row + 16 * i, c + left_vector));
#pragma unroll
                    for (uint j = 0; j < COLUMNS / 2; j++) {
                        sums[i][2 * j] = nvidia::multiply_accumulate(left, right[j].xy, sums[i][2 * j]);
                        sums[i][2 * j + 1] = nvidia::multiply_accumulate(left, right[j].zw, sums[i][2 * j + 1]);
                    }
                }
            }
            team_barrier<TEAM>();
        }
    }

    // Adds the sums of the other teams to those of the first, through threadgroup memory: a place of 4 floats for each thread and
    // matrix. Whether this thread is of the first team, which has the result. All threads must call it.
    bool join(threadgroup uint4 *memory, uint thread_index) {
        if (SPLIT == 1) {
            return true;
        }
        const uint team = thread_index / TEAM;
        const uint in_team = thread_index % TEAM;
#pragma unroll
        for (uint i = 0; i < ROWS; i++) {
#pragma unroll
            for (uint j = 0; j < COLUMNS; j++) {
                if (team > 0) {
                    memory[team * VECTORS + (i * COLUMNS + j) * TEAM + in_team] = as_type<uint4>(sums[i][j]);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (team > 0) {
            return false;
        }
#pragma unroll
        for (uint i = 0; i < ROWS; i++) {
#pragma unroll
            for (uint j = 0; j < COLUMNS; j++) {
#pragma unroll
                for (uint other = 1; other < SPLIT; other++) {
                    sums[i][j] += as_type<float4>(memory[other * VECTORS + (i * COLUMNS + j) * TEAM + in_team]);
                }
            }
        }
        return true;
    }
};

template <typename F, typename P, uint TILE_M, uint TILE_N, uint SIMD_M, uint SIMD_N, uint SPLIT>
kernel void tensor_gemm(
    device const half *x         [[buffer(0)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(1)]],  // (N, K)
    device float *y              [[buffer(2)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(3)]],
    device const float *scale    [[buffer(4)]],  // (M)
    uint2 group                  [[threadgroup_position_in_grid]],
    uint thread_index            [[thread_index_in_threadgroup]],
    uint lane                    [[thread_index_in_simdgroup]]
) {
    typedef TensorTile<F, TILE_M, TILE_N, SIMD_M, SIMD_N, SPLIT> Tile;
    threadgroup uint4 memory[Tile::MEMORY];
    threadgroup uint stages[Tile::STAGES];

    const uint in_team = thread_index % Tile::TEAM;
    const uint K = matmul_k(params.K);
    const uint first_m = group.x * TILE_M;
    const uint first_n = group.y * TILE_N;
    Tile tile;
    tile.weights.begin(weight, weight_layout(params), first_n, in_team, K);
    tile.w_row = in_team / 2;
#pragma unroll
    for (uint i = 0; i < Tile::X_VECTORS; i++) {
        const uint m = min(first_m + Tile::x_row(in_team, i), params.M - 1);
        tile.x_rows[i] = x + ulong(m) * params.lda + Tile::x_column(in_team);
    }
    tile.multiply(memory, stages, K, thread_index);
    if (!tile.join(memory, thread_index)) {
        return;
    }

#pragma unroll
    for (uint i = 0; i < Tile::ROWS; i++) {
#pragma unroll
        for (uint lower = 0; lower < 2; lower++) {
            const uint m = first_m + Tile::simd_m(in_team) + 16 * i + 8 * lower + lane / 4;
            if (m < params.M) {
                device float *row = y + ulong(m) * params.ldc;
                const float factor = scale[m];
#pragma unroll
                for (uint j = 0; j < Tile::COLUMNS; j++) {
                    const uint column = first_n + Tile::simd_n(in_team) + 8 * j + lane % 4 * 2;
                    const float2 pair = lower == 0 ? tile.sums[i][j].xy : tile.sums[i][j].zw;
                    if (column < params.N) {
                        store_product(row + column, pair.x * factor, params);
                    }
                    if (column + 1 < params.N) {
                        store_product(row + column + 1, pair.y * factor, params);
                    }
                }
            }
        }
    }
}
