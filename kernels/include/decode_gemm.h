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
// Launch:  grid (ceil(M / (8 * TILES)), the sum over the weights of ceil(N / (16 * columns))), threadgroups of (32 * columns, splits) threads, up to
//          DECODE_TEAM SIMD groups. Those of a column have the same outputs and take turns at the steps of K; their sums meet in
//          threadgroup memory.
// Memory:  every weight is read once for 8 * TILES rows. A SIMD group copies the bytes of a step, 16 rows of them, to threadgroup
//          memory by vectors that follow each other, two steps ahead, and the first two before x is there; nobody else waits for
//          it. A row is copied from the last multiple of 16 bytes on, so that rows and steps may begin anywhere.
#pragma once

#include "include/few_rows.h"
#include "include/inputs.h"
#include "include/reduce.h"

// Steps that are under way at once.
constant constexpr uint STAGES = 2;

// How the weights of a format are staged: spans of a step and their bytes, and vectors of a row in threadgroup memory, an odd
// number, so that the rows of a matrix fall into different banks.
template <uint SPANS_OF_STEP, uint BYTES_OF_STEP, uint VECTORS_OF_ROW>
struct Staging {
    static constant constexpr uint SPANS = SPANS_OF_STEP;
    static constant constexpr uint BYTES = BYTES_OF_STEP;
    static constant constexpr uint VECTORS = VECTORS_OF_ROW;
    // Most SIMD groups of a threadgroup.
    static constant constexpr uint TEAM = VECTORS <= 11 ? 8 : 4;
};

template <typename F>
struct StagedStep;
template <>
struct StagedStep<FormatQ4_0> : Staging<8, 8 * sizeof(block_q4_0), 11> {};
template <>
struct StagedStep<FormatQ8_0> : Staging<4, 4 * sizeof(block_q8_0), 11> {};
template <typename T>
struct StagedStep<FormatPlain<T>> : Staging<4, 4 * SPAN * sizeof(T), 17> {};

// A row of staged blocks that begins at byte `begin`.
inline StagedRow staged_row(threadgroup const uint4 *row, uint begin) {
    return { (threadgroup const uint *)row + begin / 4, begin / 2 % 2 };
}

// A lane's span of a row, as it was staged; `run` is run r as halves.
template <typename F>
struct LaneSpan;

template <>
struct LaneSpan<FormatQ4_0> {
    Spans<FormatQ4_0>::Span span;
    half2 d;

    void load(threadgroup const uint4 *row, uint begin, uint index, bool exists) {
        span = Spans<FormatQ4_0>::load(staged_row(row, begin), index);
        d = half2(exists ? as_type<half>(ushort(span.d)) : half(0.0h));
    }

    // 1024 + q is a half with q in its low byte; d * (q - 8) is rounded once.
    uint2 four(uint word, uint shift) const {
        const uint q = word >> shift & 0x0f0f0f0fu;
        const half2 low = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4140u)) - half2(1032.0h)) * d;
        const half2 high = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4342u)) - half2(1032.0h)) * d;
        return uint2(as_type<uint>(low), as_type<uint>(high));
    }

    uint4 run(uint r) const {
        const uint shift = 4 * (r / 2);
        return uint4(four(span.qs.word[2 * (r % 2)], shift), four(span.qs.word[2 * (r % 2) + 1], shift));
    }
};

template <>
struct LaneSpan<FormatQ8_0> {
    Spans<FormatQ8_0>::Span span;
    half2 d;

    void load(threadgroup const uint4 *row, uint begin, uint index, bool exists) {
        span = Spans<FormatQ8_0>::load(staged_row(row, begin), index);
        d = half2(exists ? as_type<half>(ushort(span.d)) : half(0.0h));
    }

    // 1024 + q + 128 is a half with q + 128 in its low byte.
    uint2 four(uint word) const {
        const uint q = word ^ 0x80808080u;
        const half2 low = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4140u)) - half2(1152.0h)) * d;
        const half2 high = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4342u)) - half2(1152.0h)) * d;
        return uint2(as_type<uint>(low), as_type<uint>(high));
    }

    uint4 run(uint r) const { return uint4(four(span.qs.word[2 * r]), four(span.qs.word[2 * r + 1])); }
};

template <typename T>
struct LaneSpan<FormatPlain<T>> {
    Words<16> bits;
    bool is_there;

    void load(threadgroup const uint4 *row, uint begin, uint index, bool exists) {
        bits = Words<16>::load(staged_row(row, begin), index * SPAN * sizeof(T));
        is_there = exists;
    }

    uint4 run(uint r) const {
        const uint4 run = uint4(bits.word[4 * r], bits.word[4 * r + 1], bits.word[4 * r + 2], bits.word[4 * r + 3]);
        return is_there ? as_halves(run, T(0)) : uint4(0);
    }
};

// The last bytes of the weights, an even number below 16, and zeros behind them.
inline void copy_rest(threadgroup ushort *to, device const ushort *from, uint n_bytes) {
    for (uint i = 0; i < 8; i++) {
        to[i] = 2 * i < n_bytes ? from[i] : ushort(0);
    }
}

// The 16 rows of weights of a SIMD group, and its ring in threadgroup memory.
template <typename F>
struct StagedRows {
    typedef StagedStep<F> Step;
    static constant constexpr uint STAGE = MATRIX_OUTPUTS * Step::VECTORS;
    static constant constexpr uint COPIES = (STAGE + SIMD_WIDTH - 1) / SIMD_WIDTH;  // of a lane and step
    threadgroup uint4 *ring;
    uint lane;
    device const uchar *first;  // a multiple of 16 bytes, in or before the first row
    uint first_begin;           // where the first row begins behind that
    uint row_bytes;
    uint last_row;  // the last of the 16 that there is
    nvidia::AsyncCopies copies;

    // Of the weights (n_rows, n_spans), the rows from first_n on; where there are none, the last.
    void begin(device const uchar *weight, uint n_rows, uint first_n, uint n_spans) {
        row_bytes = n_spans * Step::BYTES / Step::SPANS;
        const uint row = min(first_n, n_rows - 1);
        const ulong place = ulong(row) * row_bytes;
        first = weight + (place & ~15ul);
        first_begin = uint(place & 15);
        last_row = min(MATRIX_OUTPUTS, n_rows - row) - 1;
    }

    // Where a step of a row begins, behind `first`.
    uint place(uint row, uint step) const { return first_begin + min(row, last_row) * row_bytes + step * Step::BYTES; }

    // Begins to copy a step to a stage of the ring, if there is such a step. All lanes must call it.
    void copy(uint step, uint n_steps, uint stage_index) {
        if (step < n_steps) {
            threadgroup uint4 *stage = ring + stage_index * STAGE;
            const uint step_bytes = min(Step::BYTES, row_bytes - step * Step::BYTES);
            const uint end = place(last_row, 0) + row_bytes;
#pragma unroll
            for (uint i = 0; i < COPIES; i++) {
                const uint vector = i * SIMD_WIDTH + lane;
                const uint begin = place(vector / Step::VECTORS, step);
                const uint from = (begin & ~15u) + vector % Step::VECTORS * 16;
                const bool is_in_stage = STAGE % SIMD_WIDTH == 0 || vector < STAGE;
                if (is_in_stage && from < begin + step_bytes) {
                    if (from + 16 <= end) {
                        copies.copy(stage + vector, (device const uint4 *)(first + from));
                    } else {
                        copy_rest((threadgroup ushort *)(stage + vector), (device const ushort *)(first + from), end - from);
                    }
                }
            }
        }
        copies.commit();
    }

    // Waits for the oldest step under way. All lanes must call it.
    void wait() {
        copies.wait<STAGES - 1>();
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
};

// The vectors of x that a lane will need next: of TILES tiles, DEPTH runs.
template <uint TILES>
struct XAhead {
    static constant constexpr uint DEPTH = 8 / TILES < SPAN_RUNS ? 8 / TILES : SPAN_RUNS;
    device const uint4 *first;
    uint tile_vectors;  // from one tile to the next
    uint n_tiles;
    uint n_quads;
    uint4 vectors[TILES][DEPTH];

    void load_run(uint r, uint quad) {
        const bool exists = quad < n_quads;
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            vectors[i][r % DEPTH] =
                exists && i < n_tiles ? first[i * tile_vectors + quad * QUAD_VECTORS + r * SIMD_WIDTH] : uint4(0);
        }
    }

    void begin(uint quad) {
#pragma unroll
        for (uint r = 0; r < DEPTH; r++) {
            load_run(r, quad);
        }
    }

    // In place of run r of a quad, which was multiplied, the run DEPTH behind it: of that quad or of the next one.
    void load(uint r, uint this_quad, uint next_quad) {
        load_run((r + DEPTH) % SPAN_RUNS, r + DEPTH < SPAN_RUNS ? this_quad : next_quad);
    }
};

// y = sum + beta * y, where beta = 0 does not look at y.
inline void store_sum(device float *y, float sum, float beta) { *y = beta != 0.0f ? sum + beta * *y : sum; }

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
    uint2 group                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint2 threads                       [[threads_per_threadgroup]]
) {
    typedef StagedStep<F> Step;
    constexpr uint STAGE = StagedRows<F>::STAGE;
    threadgroup uint4 memory[Step::TEAM * STAGES * STAGE];
    static_assert(sizeof(memory) <= 48 * 1024, "threadgroup memory");
    static_assert(TILES * SIMD_WIDTH <= STAGES * STAGE, "sums take the place of the weights");

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

    StagedRows<F> rows;
    rows.ring = memory + simd_group * STAGES * STAGE;
    rows.lane = lane;
    rows.begin(pick(chosen.index, weight_0, weight_1, weight_2), chosen.n, first_n, n_spans);
#pragma unroll
    for (uint i = 0; i < STAGES; i++) {
        rows.copy(split + i * n_splits, n_steps, i);
    }
    inputs_are_ready();

    // Where tiles are few, each has two sums, so that a product need not wait for the one before it.
    constexpr uint SUMS = TILES <= 2 ? 2 : 1;
    float4 sums[TILES][SUMS];
#pragma unroll
    for (uint i = 0; i < TILES; i++) {
        sums[i][0] = float4(0.0f);
        sums[i][SUMS - 1] = float4(0.0f);
    }
    XAhead<TILES> ahead;
    ahead.first = (device const uint4 *)x + ulong(first_m) * params.lda / 8 + lane;
    ahead.tile_vectors = params.lda;
    ahead.n_tiles = min(TILES, (params.M - first_m + X_ROWS - 1) / X_ROWS);
    ahead.n_quads = (n_spans + QUAD - 1) / QUAD;
    ahead.begin(split * (Step::SPANS / QUAD));
    uint stage_index = 0;
    for (uint step = split; step < n_steps; step += n_splits) {
        rows.wait();
        threadgroup const uint4 *stage = rows.ring + stage_index * STAGE;
        threadgroup const uint4 *upper_row = stage + g * Step::VECTORS;
        threadgroup const uint4 *lower_row = stage + (g + 8) * Step::VECTORS;
        const uint upper_begin = rows.place(g, step) % 16;
        const uint lower_begin = rows.place(g + 8, step) % 16;
#pragma unroll(TILES <= 2 ? 2 : 1)
        for (uint quad = 0; quad < Step::SPANS / QUAD; quad++) {
            const uint first_span = step * Step::SPANS + quad * QUAD;
            if (first_span < n_spans) {
                const bool exists = first_span + t < n_spans;
                LaneSpan<F> upper;
                LaneSpan<F> lower;
                upper.load(upper_row, upper_begin, quad * QUAD + t, exists);
                lower.load(lower_row, lower_begin, quad * QUAD + t, exists);
                const uint this_quad = first_span / QUAD;
                const uint next_quad = quad + 1 < Step::SPANS / QUAD ? this_quad + 1 : (step + n_splits) * (Step::SPANS / QUAD);
#pragma unroll
                for (uint r = 0; r < SPAN_RUNS; r++) {
                    const uint4 a = upper.run(r);
                    const uint4 b = lower.run(r);
#pragma unroll
                    for (uint i = 0; i < TILES; i++) {
                        const uint4 right = ahead.vectors[i][r % XAhead<TILES>::DEPTH];
                        sums[i][0] = nvidia::multiply_accumulate(uint4(a.x, b.x, a.y, b.y), right.xy, sums[i][0]);
                        thread float4 &last = sums[i][SUMS - 1];
                        last = nvidia::multiply_accumulate(uint4(a.z, b.z, a.w, b.w), right.zw, last);
                    }
                    ahead.load(r, this_quad, next_quad);
                }
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        rows.copy(step + STAGES * n_splits, n_steps, stage_index);
        stage_index = (stage_index + 1) % STAGES;
    }

    // The sums of the other splits go through threadgroup memory: every copy was waited for.
    if (split > 0) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            rows.ring[i * SIMD_WIDTH + lane] = as_type<uint4>(SUMS == 1 ? sums[i][0] : sums[i][0] + sums[i][SUMS - 1]);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (split > 0) {
        return;
    }
#pragma unroll
    for (uint i = 0; i < TILES; i++) {
        float4 sum = SUMS == 1 ? sums[i][0] : sums[i][0] + sums[i][SUMS - 1];
        for (uint other = 1; other < n_splits; other++) {
            threadgroup const uint4 *share = memory + (other * n_columns + column) * STAGES * STAGE;
            sum += as_type<float4>(share[i * SIMD_WIDTH + lane]);
        }
#pragma unroll
        for (uint j = 0; j < 2; j++) {
            const uint m = first_m + i * X_ROWS + 2 * t + j;
            if (m < params.M) {
                device float *to = pick(chosen.index, y_0, y_1, y_2) + ulong(m) * chosen.n + first_n + g;
                const float2 pair = scale[m] * (j == 0 ? sum.xz : sum.yw);
                if (first_n + g < chosen.n) {
                    store_sum(to, pair.x, params.beta);
                }
                if (first_n + g + 8 < chosen.n) {
                    store_sum(to + 8, pair.y, params.beta);
                }
            }
        }
    }
}
