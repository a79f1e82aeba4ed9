// Products of one row on NVIDIA's GPUs, weights (N, K) in any format. The threads of a threadgroup stage x together. Its SIMD
// groups are a table of `splits` rows: those of a column have the same ROWS outputs and take turns at the steps of 1024
// values, and their sums meet in threadgroup memory.
//
// Where a format's weights are bytes (integer_span.h), x is staged as whole numbers of 16 bits with a factor for each 32,
// and four weights are multiplied at once; else it is staged as floats.
//
// A small product takes as long as its instructions take to arrive, since a threadgroup runs most of them once: nothing is
// unrolled that need not be, and what there is nothing to do for is skipped.
//
// Memory:  every weight is read once, in spans of 32, and the first of a chunk before x is. x is read once for all outputs of
//          a threadgroup, in chunks of CHUNK values.
#pragma once

#include "include/integer_span.h"
#include "include/norm_gemv.h"

constant constexpr uint CHUNK = 8192;
constant constexpr uint CHUNK_SPANS = CHUNK / SPAN;
// Vectors of x that a thread loads before it stages the first of them.
constant constexpr uint AT_ONCE = 4;
// Most SIMD groups of a threadgroup.
constant constexpr uint MAX_TEAM = 8;

// Where a thread is.
struct DecodePlace {
    uint group;
    uint n_groups;
    uint thread_index;
    uint n_threads;
    uint lane;
    uint column;  // of the SIMD group
    uint n_columns;
    uint split;
    uint n_splits;
};

inline DecodePlace decode_place(uint2 group, uint thread_index, uint2 threads) {
    const uint n_columns = threads.x / SIMD_WIDTH;
    const uint simd_group = thread_index / SIMD_WIDTH;
    return {
        group.x, group.y, thread_index, threads.x * threads.y, thread_index % SIMD_WIDTH,
        simd_group % n_columns, n_columns, simd_group / n_columns, threads.y,
    };
}

// x in device memory, aligned to 16 bytes.
struct AlignedX {
    device const float *x;

    float4 vector(uint i) const { return ((device const float4 *)x)[i]; }
};

// The same, aligned to 4 bytes.
struct PackedX {
    device const float *x;

    float4 vector(uint i) const { return float4(((device const packed_float4 *)x)[i]); }
};

// Either.
struct PlainX {
    device const float *x;
    bool is_aligned;

    float value(uint i) const { return x[i]; }
};

// x as whole numbers.
template <typename F, bool AS_INTEGERS = ByteSpans<F>::EXIST>
struct StagedX {
    typedef typename ByteSpans<F>::Span Span;
    // Whether threadgroups take turns.
    static constant constexpr bool TAKES_TURNS = true;
    static constant constexpr uint SPAN_STRIDE_VECTORS = X_VECTORS;
    // Largest v: its high byte is not more than 127.
    static constant constexpr float LARGEST = 32512.0f;
    // Below this the factor of the largest v would not be a float.
    static constant constexpr float SMALLEST = 1e-30f;
    // 1.5 * 2^23 + 128: where it is added to v, the sum is rounded to a whole number, and its bits are BITS + v, so that byte 1 is the
    // high byte of v, and byte 0 the low one with the highest bit turned.
    static constant constexpr float TO_WHOLE = 12583040.0f;
    static constant constexpr uint BITS = 0x4b400080u;

    // A byte of each of four numbers; `which` names it for two of them (nvidia::permute).
    static uint bytes_of(uint4 v, uint which) {
        return nvidia::permute(nvidia::permute(v.x, v.y, which), nvidia::permute(v.z, v.w, which), 0x5410);
    }

    // Four values, vector `at` of the chunk; the 8 lanes of a span do it together.
    static void put(threadgroup uint4 *stage, uint at, float4 x, bool is_there) {
        float largest = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
#pragma unroll
        for (ushort other = 1; other < 8; other *= 2) {
            largest = max(largest, simd_shuffle_xor(largest, other));
        }
        const float per_unit = largest > SMALLEST ? LARGEST / largest : 0.0f;
        const uint4 v = as_type<uint4>(fma(x, float4(per_unit), float4(TO_WHOLE)));
        int sum = int(v.x + v.y + v.z + v.w - 4 * BITS);
        sum += simd_shuffle_xor(sum, ushort(1));
        sum += simd_shuffle_xor(sum, ushort(2));
        if (!is_there) {
            return;
        }
        threadgroup uint *words = (threadgroup uint *)(stage + at / SPAN_VECTORS * SPAN_STRIDE_VECTORS);
        const uint i = at % SPAN_VECTORS;
        words[i] = bytes_of(v, 0x0051);
        words[SPAN_VECTORS + i] = bytes_of(v, 0x0040) ^ 0x80808080u;
        const float factor = largest * (1.0f / LARGEST);
        if (i % 4 == 0) {
            words[17 + i / 4] = as_type<uint>(factor * float(sum));
        }
        if (i == 0) {
            words[16] = as_type<uint>(factor);
        }
    }

    static Span load(typename Spans<F>::Row row, uint index, uint lane) {
        return ByteSpans<F>::load(row, index, lane % SLICES);
    }

    // `index` is the lane's span of the chunk.
    template <uint ROWS>
    static void dot(thread Span (&spans)[ROWS], threadgroup const uint4 *stage, uint index, thread float (&sums)[ROWS]) {
        const typename ByteSpans<F>::X x = ByteSpans<F>::X::load(stage, index, index % SLICES);
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
    // Spans leave no registers for what the next turn needs.
    static constant constexpr bool TAKES_TURNS = false;
    static constant constexpr uint SPAN_STRIDE_VECTORS = SPAN_STRIDE / 4;

    static void put(threadgroup uint4 *stage, uint at, float4 x, bool is_there) {
        if (is_there) {
            stage[at / SPAN_VECTORS * SPAN_STRIDE_VECTORS + at % SPAN_VECTORS] = as_type<uint4>(x);
        }
    }

    static Span load(typename Spans<F>::Row row, uint index, uint) { return Spans<F>::load(row, index); }

    template <uint ROWS>
    static void dot(thread Span (&spans)[ROWS], threadgroup const uint4 *stage, uint index, thread float (&sums)[ROWS]) {
        threadgroup const uint4 *x = stage + index * SPAN_STRIDE_VECTORS;
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            sums[r] += dot_span<F>(spans[r], (threadgroup const float4 *)x);
        }
    }
};

template <typename F>
constant constexpr uint STAGE = CHUNK_SPANS * StagedX<F>::SPAN_STRIDE_VECTORS;

// The spans of all rows that a lane takes of the step that begins at span `first`.
template <typename F, uint ROWS>
inline void load_spans(
    thread typename Spans<F>::Row (&rows)[ROWS], uint first, uint n_spans, uint lane,
    thread typename StagedX<F>::Span (&spans)[ROWS]
) {
    if (first >= n_spans) {
        // Nobody reads them; but if they were left as they are, the compiler would keep two sets of registers.
        const typename StagedX<F>::Span nothing = {};
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            spans[r] = nothing;
        }
        return;
    }
    const uint mine = min(first + lane, n_spans - 1);
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        spans[r] = StagedX<F>::load(rows[r], mine, lane);
    }
}

// Stages the chunk of x that begins at span `first`. All threads must call it.
template <typename F, typename X>
inline void stage_chunk(thread X &x, uint first, uint n_spans, DecodePlace at, threadgroup uint4 *stage) {
    const uint n_vectors = min(n_spans - first, CHUNK_SPANS) * SPAN_VECTORS;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint base = at.thread_index; base - at.thread_index < n_vectors; base += AT_ONCE * at.n_threads) {
        float4 values[AT_ONCE];
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++) {
            const uint vector = base + i * at.n_threads;
            values[i] = vector < n_vectors ? x.vector(first * SPAN_VECTORS + vector) : float4(0.0f);
        }
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++) {
            const uint vector = base + i * at.n_threads;
            // The same for all threads.
            if (vector - at.thread_index < n_vectors) {
                StagedX<F>::put(stage, vector, values[i], vector < n_vectors);
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// The choice is made once, so that several vectors can be under way.
template <typename F>
inline void stage_chunk(thread PlainX &x, uint first, uint n_spans, DecodePlace at, threadgroup uint4 *stage) {
    if (x.is_aligned) {
        AlignedX aligned = { x.x };
        stage_chunk<F>(aligned, first, n_spans, at, stage);
    } else {
        PackedX packed = { x.x };
        stage_chunk<F>(packed, first, n_spans, at, stage);
    }
}

// Adds to sums[r] this lane's share of sum_k row_r[k] * x[k] over the staged chunk that begins at span `chunk`. The first
// spans are loaded already.
template <typename F, uint ROWS>
inline void dot_chunk(
    thread typename Spans<F>::Row (&rows)[ROWS], thread typename StagedX<F>::Span (&spans)[ROWS], uint chunk,
    uint n_spans, DecodePlace at, threadgroup const uint4 *stage, thread float (&sums)[ROWS]
) {
    const uint count = min(n_spans - chunk, CHUNK_SPANS);
    uint first = at.split * SIMD_WIDTH;
    while (first < count) {
        if (first + at.lane < count) {
            StagedX<F>::dot(spans, stage, first + at.lane, sums);
        }
        first += at.n_splits * SIMD_WIDTH;
        if (first < count) {
            load_spans<F, ROWS>(rows, chunk + first, n_spans, at.lane, spans);
        }
    }
}

// The sums of all lanes; lane l gets that of row l % 4. Lanes with half of the rows each exchange the other half.
inline float sum_of_four(thread float (&sums)[4], uint lane) {
    const bool is_upper = (lane & 2) != 0;
    const bool is_odd = (lane & 1) != 0;
    const float even = (is_upper ? sums[2] : sums[0]) + simd_shuffle_xor(is_upper ? sums[0] : sums[2], ushort(2));
    const float odd = (is_upper ? sums[3] : sums[1]) + simd_shuffle_xor(is_upper ? sums[1] : sums[3], ushort(2));
    float mine = (is_odd ? odd : even) + simd_shuffle_xor(is_odd ? even : odd, ushort(1));
#pragma unroll
    for (ushort other = 4; other < SIMD_WIDTH; other *= 2) {
        mine += simd_shuffle_xor(mine, other);
    }
    return mine;
}

// The sums of all lanes and splits of a column, to the lanes of its first split: lane r gets the sum of row r.
template <uint ROWS>
inline float meet(thread float (&sums)[ROWS], threadgroup float *shares, DecodePlace at) {
    float mine = sum_of_four(sums, at.lane);
    if (at.n_splits == 1) {
        return mine;
    }
    // The shares of the turn before were read.
    threadgroup_barrier(mem_flags::mem_threadgroup);
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

// All products of a threadgroup: it takes the turns at.group, at.group + at.n_groups, … of `outputs`. x is staged once for all of
// them if one chunk holds it. All threads must call it.
template <typename F, uint ROWS, typename Outputs, typename X>
inline void all_turns(
    thread Outputs &outputs, thread X &x, uint K, DecodePlace at, threadgroup uint4 *stage, threadgroup float *shares
) {
    const uint n_spans = K / SPAN;
    const uint n_turns = outputs.n_turns(at);
    for (uint turn = at.group; turn < n_turns; turn += at.n_groups) {
        const bool is_first = turn == at.group;
        typename Spans<F>::Row rows[ROWS];
        outputs.take(turn, at, rows);
        float sums[ROWS] = { 0.0f };
        for (uint chunk = 0; chunk < n_spans; chunk += CHUNK_SPANS) {
            typename StagedX<F>::Span spans[ROWS];
            load_spans<F, ROWS>(rows, chunk + at.split * SIMD_WIDTH, n_spans, at.lane, spans);
            if (is_first || n_spans > CHUNK_SPANS) {
                inputs_are_ready();
                stage_chunk<F>(x, chunk, n_spans, at, stage);
            }
            dot_chunk<F, ROWS>(rows, spans, chunk, n_spans, at, stage, sums);
        }
        if (K % SPAN != 0 && at.split == 0) {
            outputs.rest(turn, at, x, K, sums);
        }
        if (is_first) {
            outputs.x_was_read(x, at);
        }
        outputs.store(turn, at, meet<ROWS>(sums, shares, at));
        if (!StagedX<F>::TAKES_TURNS) {
            return;
        }
    }
}

// The outputs of one weight.
template <typename F, typename P, uint ROWS>
struct PlainOutputs {
    device const uchar *weight;
    device float *y;
    constant P *params;

    uint n_turns(DecodePlace at) const { return ceil_divide(params->N, ROWS * at.n_columns); }
    uint first(uint turn, DecodePlace at) const { return (turn * at.n_columns + at.column) * ROWS; }

    void take(uint turn, DecodePlace at, thread typename Spans<F>::Row (&rows)[ROWS]) const {
        take_rows<Spans<F>, ROWS>(weight, weight_layout(*params), first(turn, at), rows);
    }
    void rest(uint turn, DecodePlace at, thread PlainX &x, uint K, thread float (&sums)[ROWS]) const {
        typename F::Row plain[ROWS];
        take_rows<F, ROWS>(weight, weight_layout(*params), first(turn, at), plain);
        dot_rest<F, ROWS>(plain, x, K, at.lane, sums);
    }
    void x_was_read(thread PlainX &, DecodePlace) const {}
    void store(uint turn, DecodePlace at, float product) const {
        const uint n = first(turn, at) + at.lane;
        if (at.split == 0 && at.lane < ROWS && n < params->N) {
            store_product(y + n, product, *params);
        }
    }
};

// y[m][n] = alpha * sum_k weight[n][k] * x[m][k] + beta * y[m][n]
//
// Launch:  grid (ceil(N / (ROWS * columns)), M), threadgroups of (32 * columns, splits) threads, up to MAX_TEAM SIMD groups.
//          Of formats that are multiplied as bytes there may be fewer threadgroups, which take turns.
template <typename F, typename P, uint ROWS>
kernel void decode_gemv(
    device const float *x        [[buffer(0)]],  // (M, K), rows lda apart
    device const uchar *weight   [[buffer(1)]],  // (N, K)
    device float *y              [[buffer(2)]],  // (M, N), rows ldc apart
    constant P &params           [[buffer(3)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint2 groups                 [[threadgroups_per_grid]],
    uint thread_index            [[thread_index_in_threadgroup]],
    uint2 threads                [[threads_per_threadgroup]]
) {
    threadgroup uint4 stage[STAGE<F>];
    threadgroup float shares[MAX_TEAM * ROWS];
    static_assert(sizeof(stage) + sizeof(shares) <= 48 * 1024, "threadgroup memory");

    const DecodePlace at = decode_place(uint2(group.x, groups.x), thread_index, threads);
    PlainX x_row = { x + ulong(group.y) * params.lda, params.lda % 4 == 0 };
    PlainOutputs<F, P, ROWS> outputs = { weight, y + ulong(group.y) * params.ldc, &params };
    all_turns<F, ROWS>(outputs, x_row, matmul_k(params.K), at, stage, shares);
}

// One of three pointers. Not by `?:` on members, which would be put into memory.
template <typename T>
inline T pick(uint index, T zero, T one, T two) {
    return index == 0 ? zero : index == 1 ? one : two;
}

// The outputs of up to three weights that read the same normalised vector.
template <typename F, uint ROWS>
struct NormedOutputs {
    device const uchar *weight_0;
    device const uchar *weight_1;
    device const uchar *weight_2;
    device float *y_0;
    device float *y_1;
    device float *y_2;
    constant NormGemvParams *params;
    threadgroup float *squares;  // of each SIMD group

    // Outputs of a weight that a SIMD group has in a turn.
    static uint n_outputs() { return GATE != 0 ? ROWS / 2 : ROWS; }

    uint n_turns(DecodePlace at) const { return n_normed_groups(*params, n_outputs() * at.n_columns); }
    NormedWeight of(uint turn, DecodePlace at) const { return normed_weight(*params, turn, n_outputs() * at.n_columns); }
    uint first(NormedWeight of, DecodePlace at) const { return (of.group * at.n_columns + at.column) * n_outputs(); }
    device const uchar *weight(NormedWeight of) const { return pick(of.index, weight_0, weight_1, weight_2); }
    NormedLayout layout(NormedWeight of) const { return normed_layout(*params, of); }

    void take(uint turn, DecodePlace at, thread typename Spans<F>::Row (&rows)[ROWS]) const {
        const NormedWeight from = of(turn, at);
        take_normed_rows<Spans<F>, ROWS>({ weight(from), weight_1 }, layout(from), first(from, at), rows);
    }
    // Every column reads the rest, and its squares count once.
    void rest(uint turn, DecodePlace at, thread GainedX &x, uint K, thread float (&sums)[ROWS]) const {
        const NormedWeight from = of(turn, at);
        typename F::Row plain[ROWS];
        take_normed_rows<F, ROWS>({ weight(from), weight_1 }, layout(from), first(from, at), plain);
        GainedX rest = { x.x, x.gain, 0.0f };
        dot_rest<F, ROWS>(plain, rest, K, at.lane, sums);
        x.square += at.column == 0 ? rest.square : 0.0f;
    }
    void x_was_read(thread GainedX &x, DecodePlace at) const {
        const float square = simd_sum(x.square);
        if (at.lane == 0) {
            squares[at.thread_index / SIMD_WIDTH] = square;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    void store(uint turn, DecodePlace at, float product) const {
        const NormedWeight to = of(turn, at);
        const uint n = first(to, at) + at.lane;
        // Of row ROWS / 2 + lane.
        const float let_through = GATE != 0 ? simd_shuffle_down(product, ushort(ROWS / 2)) : 0.0f;
        if (at.split != 0 || at.lane >= n_outputs() || n >= to.n) {
            return;
        }
        float all = 0.0f;
        for (uint s = 0; s < at.n_columns * at.n_splits; s++) {
            all += squares[s];
        }
        const float inverse = inverse_rms(all, params->K, params->eps);
        pick(to.index, y_0, y_1, y_2)[n] =
            GATE == 0 ? product * inverse : apply_gate(product * inverse) * (let_through * inverse);
    }
};

// y_i[n] = 1 / sqrt(mean(x^2) + eps) * sum_k weight_i[n][k] * gain[k] * x[k], as in include/norm_gemv.h, and with FC_GATE
// y_0[n] = act(product with weight 0) * (product with weight 1).
//
// Launch:  a threadgroup for each ROWS * columns outputs of a weight, those of weight 0 first; with FC_GATE for each
//          ROWS / 2 * columns outputs of both. Of formats that are multiplied as bytes there may be fewer, which take turns.
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
    uint groups                     [[threadgroups_per_grid]],
    uint thread_index               [[thread_index_in_threadgroup]],
    uint2 threads                   [[threads_per_threadgroup]]
) {
    threadgroup uint4 stage[STAGE<F>];
    threadgroup float shares[MAX_TEAM * ROWS];
    threadgroup float squares[MAX_TEAM];
    static_assert(sizeof(stage) + sizeof(shares) + sizeof(squares) <= 48 * 1024, "threadgroup memory");

    const DecodePlace at = decode_place(uint2(group, groups), thread_index, threads);
    GainedX gained = { x, gain, 0.0f };
    NormedOutputs<F, ROWS> outputs = { weight_0, weight_1, weight_2, y_0, y_1, y_2, &params, squares };
    all_turns<F, ROWS>(outputs, gained, params.K, at, stage, shares);
}
