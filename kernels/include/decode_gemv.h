// Products of one row on NVIDIA's GPUs, weights (N, K) in any format. The threads of a threadgroup stage x together. Its SIMD
// groups are a table of `splits` rows: those of a column have the same ROWS outputs and take turns at the steps of 1024
// values, and their sums meet in threadgroup memory.
//
// Where a format's weights are bytes (integer_span.h), x is staged as whole numbers of 16 bits with a factor for each 32,
// and four weights are multiplied at once; else it is staged as floats.
//
// Memory:  every weight is read once, in spans of 32, and the first of a chunk before x is. x is read once for all outputs of
//          a threadgroup, in chunks of CHUNK values.
#pragma once

#include "include/integer_span.h"
#include "include/norm_gemv.h"

constant constexpr uint CHUNK = 4096;
constant constexpr uint CHUNK_SPANS = CHUNK / SPAN;
// Vectors of x that a thread loads before it stages the first of them.
constant constexpr uint AT_ONCE = 4;
// Most SIMD groups of a threadgroup.
constant constexpr uint MAX_TEAM = 8;

// Where a thread is.
struct DecodePlace {
    uint thread_index;
    uint n_threads;
    uint lane;
    uint column;  // of the SIMD group
    uint n_columns;
    uint split;
    uint n_splits;
};

inline DecodePlace decode_place(uint thread_index, uint2 threads) {
    const uint n_columns = threads.x / SIMD_WIDTH;
    const uint simd_group = thread_index / SIMD_WIDTH;
    return {
        thread_index, threads.x * threads.y, thread_index % SIMD_WIDTH,
        simd_group % n_columns, n_columns, simd_group / n_columns, threads.y,
    };
}

// x in device memory, rows of whole float4.
struct AlignedX {
    device const float *x;

    float4 vector(uint i) const { return ((device const float4 *)x)[i]; }
    float value(uint i) const { return x[i]; }
};

// x in device memory, aligned to 4 bytes.
struct PackedX {
    device const float *x;

    float4 vector(uint i) const { return float4(((device const packed_float4 *)x)[i]); }
    float value(uint i) const { return x[i]; }
};

// x as whole numbers. A span is 5 vectors of 16 bytes: high bytes, low bytes, and the factor and both sums; those of 8
// lanes fall into different banks.
template <typename F, bool AS_INTEGERS = ByteSpans<F>::EXIST>
struct StagedX {
    typedef typename ByteSpans<F>::Span Span;
    static constant constexpr uint SPAN_STRIDE_VECTORS = 5;
    // Spans of a super-block: a lane has the same one in each step.
    static constant constexpr uint GROUPS = 8;
    // Largest v: its high byte is not more than 127.
    static constant constexpr float LARGEST = 32512.0f;
    // Below this the factor of the largest v would not be a float.
    static constant constexpr float SMALLEST = 1e-30f;

    // Four values, vector `at` of the chunk; the 8 lanes of a span do it together.
    static void put(threadgroup uint4 *stage, uint at, float4 x, bool is_there) {
        float largest = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
#pragma unroll
        for (ushort other = 1; other < 8; other *= 2) {
            largest = max(largest, simd_shuffle_xor(largest, other));
        }
        const int4 v = int4(rint(x * (largest > SMALLEST ? fast::divide(LARGEST, largest) : 0.0f)));
        const int4 high = (v + 128) >> 8;
        int sum = v.x + v.y + v.z + v.w;
        sum += simd_shuffle_xor(sum, ushort(1));
        sum += simd_shuffle_xor(sum, ushort(2));
        if (!is_there) {
            return;
        }
        threadgroup uint *words = (threadgroup uint *)(stage + at / SPAN_VECTORS * SPAN_STRIDE_VECTORS);
        const uint i = at % SPAN_VECTORS;
        words[i] = as_type<uint>(char4(high));
        words[SPAN_VECTORS + i] = as_type<uint>(char4(v - high * 256));
        const float factor = largest * (1.0f / LARGEST);
        if (i % 4 == 0) {
            words[17 + i / 4] = as_type<uint>(factor * float(sum));
        }
        if (i == 0) {
            words[16] = as_type<uint>(factor);
        }
    }

    static Span load(typename Spans<F>::Row row, uint index, uint lane) {
        return ByteSpans<F>::load(row, index, lane % GROUPS);
    }

    template <uint ROWS>
    static void dot(thread Span (&spans)[ROWS], threadgroup const uint4 *stage, thread float (&sums)[ROWS]) {
        const float4 rest = as_type<float4>(stage[4]);
        const IntegerX x = { { stage[0], stage[1] }, { stage[2], stage[3] }, rest.x, rest.yz };
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            sums[r] += ByteSpans<F>::dot(spans[r], x);
        }
    }
};

// x as floats.
template <typename F>
struct StagedX<F, false> {
    typedef typename Spans<F>::Span Span;
    static constant constexpr uint SPAN_STRIDE_VECTORS = SPAN_STRIDE / 4;

    static void put(threadgroup uint4 *stage, uint at, float4 x, bool is_there) {
        if (is_there) {
            stage[at / SPAN_VECTORS * SPAN_STRIDE_VECTORS + at % SPAN_VECTORS] = as_type<uint4>(x);
        }
    }

    static Span load(typename Spans<F>::Row row, uint index, uint) { return Spans<F>::load(row, index); }

    template <uint ROWS>
    static void dot(thread Span (&spans)[ROWS], threadgroup const uint4 *stage, thread float (&sums)[ROWS]) {
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            sums[r] += dot_span<F>(spans[r], (threadgroup const float4 *)stage);
        }
    }
};

template <typename F>
constant constexpr uint STAGE = CHUNK_SPANS * StagedX<F>::SPAN_STRIDE_VECTORS;

// Rows first .. first + ROWS, as take_rows has them.
template <typename F, uint ROWS>
inline void take_span_rows(
    device const uchar *weight, WeightLayout at, uint first, thread typename Spans<F>::Row (&rows)[ROWS]
) {
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        rows[r] = Spans<F>::row(weight, at, min(first + r, at.n_rows - 1));
    }
}

// The spans of all rows that a lane takes of the step that begins at span `first`.
template <typename F, uint ROWS>
inline void load_spans(
    thread typename Spans<F>::Row (&rows)[ROWS], uint first, uint n_spans, uint lane,
    thread typename StagedX<F>::Span (&spans)[ROWS]
) {
    if (first >= n_spans) {
        return;
    }
    const uint mine = min(first + lane, n_spans - 1);
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        spans[r] = StagedX<F>::load(rows[r], mine, lane);
    }
}

// Adds to sums[r] this lane's share of sum_k row_r[k] * x[k] over all whole spans. All threads must call it.
template <typename F, uint ROWS, typename X>
inline void dot_staged(
    thread typename Spans<F>::Row (&rows)[ROWS], thread X &x, uint K, DecodePlace at, threadgroup uint4 *stage,
    thread float (&sums)[ROWS]
) {
    const uint n_spans = K / SPAN;
    const uint stride = at.n_splits * SIMD_WIDTH;
    for (uint chunk = 0; chunk < n_spans; chunk += CHUNK_SPANS) {
        const uint count = min(n_spans - chunk, CHUNK_SPANS);
        const uint n_vectors = count * SPAN_VECTORS;
        uint first = at.split * SIMD_WIDTH;
        typename StagedX<F>::Span spans[ROWS];
        load_spans<F, ROWS>(rows, chunk + first, n_spans, at.lane, spans);
        inputs_are_ready();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint base = at.thread_index; base - at.thread_index < n_vectors; base += AT_ONCE * at.n_threads) {
            float4 values[AT_ONCE];
#pragma unroll
            for (uint i = 0; i < AT_ONCE; i++) {
                const uint vector = base + i * at.n_threads;
                values[i] = vector < n_vectors ? x.vector(chunk * SPAN_VECTORS + vector) : float4(0.0f);
            }
#pragma unroll
            for (uint i = 0; i < AT_ONCE; i++) {
                const uint vector = base + i * at.n_threads;
                StagedX<F>::put(stage, vector, values[i], vector < n_vectors);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        while (first < count) {
            if (first + at.lane < count) {
                StagedX<F>::dot(spans, stage + (first + at.lane) * StagedX<F>::SPAN_STRIDE_VECTORS, sums);
            }
            first += stride;
            if (first < count) {
                load_spans<F, ROWS>(rows, chunk + first, n_spans, at.lane, spans);
            }
        }
    }
}

// The sums of all lanes and splits of a column, to the lanes of its first split: lane r gets the sum of row r.
template <uint ROWS>
inline float meet(thread float (&sums)[ROWS], threadgroup float *shares, DecodePlace at) {
    float mine = 0.0f;
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const float sum = simd_sum(sums[r]);
        mine = at.lane == r ? sum : mine;
    }
    if (at.n_splits == 1) {
        return mine;
    }
    if (at.lane < ROWS) {
        shares[(at.split * at.n_columns + at.column) * ROWS + at.lane] = mine;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float all = 0.0f;
    if (at.split == 0 && at.lane < ROWS) {
        for (uint s = 0; s < at.n_splits; s++) {
            all += shares[(s * at.n_columns + at.column) * ROWS + at.lane];
        }
    }
    return all;
}

// y[m][n] = alpha * sum_k weight[n][k] * x[m][k] + beta * y[m][n]
//
// Launch:  grid (ceil(N / (ROWS * columns)), M), threadgroups of (32 * columns, splits) threads, up to MAX_TEAM SIMD groups.
template <typename F, typename P, uint ROWS>
kernel void decode_gemv(
    device const float *x        [[buffer(0)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(1)]],  // (N, K)
    device float *y              [[buffer(2)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(3)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint thread_index            [[thread_index_in_threadgroup]],
    uint2 threads                [[threads_per_threadgroup]]
) {
    threadgroup uint4 stage[STAGE<F>];
    threadgroup float shares[MAX_TEAM * ROWS];
    static_assert(sizeof(stage) + sizeof(shares) <= 32 * 1024, "threadgroup memory");

    const DecodePlace at = decode_place(thread_index, threads);
    const uint first = (group.x * at.n_columns + at.column) * ROWS;
    const WeightLayout layout = weight_layout(params);
    typename Spans<F>::Row rows[ROWS];
    take_span_rows<F, ROWS>(weight, layout, first, rows);
    typename F::Row plain[ROWS];
    take_rows<F, ROWS>(weight, layout, first, plain);

    const uint K = matmul_k(params.K);
    float sums[ROWS] = { 0.0f };
    device const float *x_row = x + ulong(group.y) * params.lda;
    PackedX packed = { x_row };
    if (params.lda % 4 == 0) {
        AlignedX aligned = { x_row };
        dot_staged<F, ROWS>(rows, aligned, K, at, stage, sums);
    } else {
        dot_staged<F, ROWS>(rows, packed, K, at, stage, sums);
    }
    if (at.split == 0) {
        dot_rest<F, ROWS>(plain, packed, K, at.lane, sums);
    }

    const float product = meet<ROWS>(sums, shares, at);
    if (at.split == 0 && at.lane < ROWS && first + at.lane < params.N) {
        store_product(y + ulong(group.y) * params.ldc + first + at.lane, product, params);
    }
}

// y_i[n] = 1 / sqrt(mean(x^2) + eps) * sum_k weight_i[n][k] * gain[k] * x[k], as in include/norm_gemv.h, and with FC_GATE
// y_0[n] = act(product with weight 0) * (product with weight 1).
//
// Launch:  a threadgroup for each ROWS * columns outputs of a weight, those of weight 0 first; with FC_GATE for each
//          ROWS / 2 * columns outputs of both.
template <typename F, uint ROWS>
kernel void decode_norm_gemv(
    device const float *x           [[buffer(0)]],  // (K)
    device const float *gain        [[buffer(1)]],  // (K)
    device const uchar *weight_0    [[buffer(2)]],  // (N0, K)
    device const uchar *weight_1    [[buffer(3)]],  // (N1, K)
    device const uchar *weight_2    [[buffer(4)]],  // (N2, K)
    device float *y_0               [[buffer(5)]],  // (N0)
    device float *y_1               [[buffer(6)]],  // (N1)
    device float *y_2               [[buffer(7)]],  // (N2)
    constant NormGemvParams &params [[buffer(8)]],
    uint group                      [[threadgroup_position_in_grid]],
    uint thread_index               [[thread_index_in_threadgroup]],
    uint2 threads                   [[threads_per_threadgroup]]
) {
    threadgroup uint4 stage[STAGE<F>];
    threadgroup float shares[MAX_TEAM * ROWS];
    threadgroup float squares[MAX_TEAM];
    static_assert(sizeof(stage) + sizeof(shares) + sizeof(squares) <= 32 * 1024, "threadgroup memory");

    const DecodePlace at = decode_place(thread_index, threads);
    // Outputs of a weight that a SIMD group has.
    const uint n_outputs = GATE != 0 ? ROWS / 2 : ROWS;
    const uint rows_a_group = n_outputs * at.n_columns;
    const NormedWeight of = normed_weight(params, group, rows_a_group);
    device const uchar *weight = of.index == 0 ? weight_0 : of.index == 1 ? weight_1 : weight_2;
    device float *y = of.index == 0 ? y_0 : of.index == 1 ? y_1 : y_2;
    const uint first = of.group * rows_a_group + at.column * n_outputs;
    const WeightLayout layout = { of.n, params.K, params.group_size, of.n * (params.K / 8 * params.bits) };
    typename Spans<F>::Row rows[ROWS];
    typename F::Row plain[ROWS];
    take_normed_rows<F, ROWS>({ weight, weight_1 }, layout, first, rows, plain);

    float sums[ROWS] = { 0.0f };
    GainedX gained = { x, gain, 0.0f };
    dot_staged<F, ROWS>(rows, gained, params.K, at, stage, sums);
    if (at.split == 0) {
        // Every column reads the rest, and its squares count once.
        GainedX rest = { x, gain, 0.0f };
        dot_rest<F, ROWS>(plain, rest, params.K, at.lane, sums);
        gained.square += at.column == 0 ? rest.square : 0.0f;
    }

    const float square = simd_sum(gained.square);
    if (at.lane == 0) {
        squares[thread_index / SIMD_WIDTH] = square;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float product = meet<ROWS>(sums, shares, at);
    // Of row ROWS / 2 + lane.
    const float let_through = GATE != 0 ? simd_shuffle_down(product, ushort(ROWS / 2)) : 0.0f;
    if (at.split == 0 && at.lane < n_outputs && first + at.lane < of.n) {
        float all = 0.0f;
        for (uint s = 0; s < at.n_columns * at.n_splits; s++) {
            all += squares[s];
        }
        const float inverse = inverse_rms(all, params.K, params.eps);
        y[first + at.lane] =
            GATE == 0 ? product * inverse : apply_gate(product * inverse) * (let_through * inverse);
    }
}
