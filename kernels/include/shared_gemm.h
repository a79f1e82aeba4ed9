// Products of a few rows with up to three weights (N, K) of one format, on NVIDIA's tensor cores:
//
//     y[m][n] = scale[m] * sum_k x[m][k] * weight[n][k] + beta * y[m][n]
//
// x is in halves with a factor for each row, in tiles (convert/half_rows.metal); weights are rounded to halves, sums are floats.
//
// A SIMD group has 16 or 32 outputs, which are the rows of one or two left matrices; rows of x are the columns of the right one, 8 to a tile. A
// sum over K may take it in any order, if both sides have the same one. Here the lane at row g and place t of a matrix
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

#include <akunu_tensor>

#include "include/arrive.h"
#include "include/format/span.h"
#include "include/inputs.h"
#include "include/reduce.h"
#include "include/tensor_row.h"

// Outputs of a matrix.
constant constexpr uint MATRIX_OUTPUTS = 16;
// SIMD groups of a threadgroup.
constant constexpr uint TEAM = 4;
// Rows of a tile of x.
constant constexpr uint X_ROWS = 8;
// Spans that the four lanes of a row of a matrix have together, and the vectors of a tile of x that belong to them.
constant constexpr uint QUAD = 4;
constant constexpr uint QUAD_VECTORS = X_ROWS * QUAD * SPAN / 8;
// Quads of x that there is room for, and that are under way beside the one that is multiplied.
constant constexpr uint X_STAGES = 3;
constant constexpr uint X_AHEAD = X_STAGES - 1;

inline uint4 pack(float4 low, float4 high) { return uint4(pack(low.xy), pack(low.zw), pack(high.xy), pack(high.zw)); }

// How the weights of a format are staged: spans of a step and their bytes; vectors of a row in threadgroup memory, an odd
// number, so that the rows of a matrix fall into different banks; matrices of a SIMD group; whether rows begin anywhere, or at
// whole vectors.
template <uint SPANS_OF_STEP, uint BYTES_OF_STEP, uint VECTORS_OF_ROW, uint MATRICES_OF_GROUP, bool BEGINS_ANYWHERE>
struct Staging {
    static constant constexpr uint SPANS = SPANS_OF_STEP;
    static constant constexpr uint BYTES = BYTES_OF_STEP;
    static constant constexpr uint VECTORS = VECTORS_OF_ROW;
    static constant constexpr uint MATRICES = MATRICES_OF_GROUP;
    static constant constexpr bool ANYWHERE = BEGINS_ANYWHERE;
    static constant constexpr uint OUTPUTS = MATRICES * MATRIX_OUTPUTS;
    static constant constexpr uint QUADS = SPANS / QUAD;
    // Steps that there is room for: the weights of a step are asked for no later than its first quad of x.
    static constant constexpr uint STAGES = 1 + (X_AHEAD + QUADS - 1) / QUADS;
    static constant constexpr uint STAGE = OUTPUTS * VECTORS;
};

template <typename F>
struct StagedStep;
template <>
struct StagedStep<FormatQ4_0> : Staging<8, 8 * sizeof(block_q4_0), 11, 2, true> {};
template <>
struct StagedStep<FormatQ8_0> : Staging<4, 4 * sizeof(block_q8_0), 11, 1, true> {};
template <>
struct StagedStep<FormatQ4K> : Staging<8, sizeof(block_q4_k), 9, 2, false> {};
template <>
struct StagedStep<FormatQ5K> : Staging<8, sizeof(block_q5_k), 11, 2, false> {};
template <>
struct StagedStep<FormatQ6K> : Staging<8, sizeof(block_q6_k), 15, 1, true> {};
template <typename T>
struct StagedStep<FormatPlain<T>> : Staging<4, 4 * SPAN * sizeof(T), 17, 1, false> {};

// A row of staged blocks that begins so many bytes behind a multiple of 16.
inline StagedRow staged_row(threadgroup const uint4 *row, uint begin) {
    return { (threadgroup const uint *)row + begin % 16 / 4, begin / 2 % 2 };
}

// Four halves (1024 + q - zero) * d of the bytes of q: 1024 + q is a half with q in its low byte. The difference is exact.
inline uint2 four_halves(uint q, half2 zero, half2 d) {
    const half2 low = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4140u)) - zero) * d;
    const half2 high = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4342u)) - zero) * d;
    return uint2(as_type<uint>(low), as_type<uint>(high));
}

// The same, d * q + m.
inline uint2 four_halves_above(uint q, half2 d, half2 m) {
    const half2 zero = half2(1024.0h);
    const half2 low = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4140u)) - zero) * d + m;
    const half2 high = (as_type<half2>(nvidia::permute(q, 0x64646464u, 0x4342u)) - zero) * d + m;
    return uint2(as_type<uint>(low), as_type<uint>(high));
}

// A lane's span of a row, as it was staged. `load` takes what all of it needs, `fetch` what the runs 2 h and 2 h + 1 need, and
// `run` is run r as halves. A span that does not exist is zeros.
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

    void fetch(uint) {}

    uint2 four(uint word, uint shift) const { return four_halves(word >> shift & 0x0f0f0f0fu, half2(1032.0h), d); }

    uint4 run(uint r) const {
        const uint shift = 4 * (r / 2);
        return uint4(four(span.qs.word[2 * (r % 2)], shift), four(span.qs.word[2 * (r % 2) + 1], shift));
    }
};

template <>
struct LaneSpan<FormatQ8_0> {
    StagedRow row;
    uint at;
    half2 d;
    Words<4> qs;

    void load(threadgroup const uint4 *blocks, uint begin, uint index, bool exists) {
        row = staged_row(blocks, begin);
        at = index * sizeof(block_q8_0);
        d = half2(exists ? as_type<half>(ushort(half_word(row, at))) : half(0.0h));
    }

    void fetch(uint h) { qs = Words<4>::load(row, at + 2 + 16 * h); }

    uint2 four(uint word) const { return four_halves(word ^ 0x80808080u, half2(1152.0h), d); }

    uint4 run(uint r) const { return uint4(four(qs.word[2 * (r % 2)]), four(qs.word[2 * (r % 2) + 1])); }
};

// The head of a super-block of q4_k and q5_k, and the scale and the minimum of a group.
struct GroupAffine {
    half2 d;
    half2 m;

    void load(uint4 head, uint group, bool exists) {
        const float2 affine = group_affine(head, group);
        d = half2(exists ? half(affine.x) : 0.0h);
        m = half2(exists ? half(affine.y) : 0.0h);
    }
};

template <>
struct LaneSpan<FormatQ4K> {
    threadgroup const uint4 *qs;
    GroupAffine affine;
    uint shift;
    uint4 bytes;

    void load(threadgroup const uint4 *row, uint, uint index, bool exists) {
        affine.load(row[0], index, exists);
        qs = row + 1 + index / 2 * 2;
        shift = index % 2 * 4;
    }

    void fetch(uint h) { bytes = qs[h] >> shift & 0x0f0f0f0fu; }

    uint4 run(uint r) const {
        const uint2 q = r % 2 == 0 ? bytes.xy : bytes.zw;
        return uint4(four_halves_above(q.x, affine.d, affine.m), four_halves_above(q.y, affine.d, affine.m));
    }
};

template <>
struct LaneSpan<FormatQ5K> {
    threadgroup const uint4 *row;
    GroupAffine affine;
    uint group;
    uint4 bytes;

    void load(threadgroup const uint4 *block, uint, uint index, bool exists) {
        row = block;
        group = index;
        affine.load(row[0], index, exists);
    }

    void fetch(uint h) {
        const uint4 low = row[3 + group / 2 * 2 + h] >> (group % 2 * 4) & 0x0f0f0f0fu;
        bytes = low | (row[1 + h] >> group & 0x01010101u) << 4;
    }

    uint4 run(uint r) const {
        const uint2 q = r % 2 == 0 ? bytes.xy : bytes.zw;
        return uint4(four_halves_above(q.x, affine.d, affine.m), four_halves_above(q.y, affine.d, affine.m));
    }
};

template <>
struct LaneSpan<FormatQ6K> {
    StagedRow row;
    uint group;
    half2 d[2];  // of the values before 16 and from 16 on
    uint bytes[4];
    uint half_index;

    void load(threadgroup const uint4 *blocks, uint begin, uint index, bool exists) {
        row = staged_row(blocks, begin);
        group = index;
        const char4 scales = as_type<char4>(half_word(row, 192 + 2 * group));
        const float factor = exists ? half_value(half_word(row, 208)) : 0.0f;
        d[0] = half2(half(factor * float(scales[0])));
        d[1] = half2(half(factor * float(scales[1])));
    }

    void fetch(uint h) {
        half_index = h;
        const Words<4> low = Words<4>::load(row, group / 4 * 64 + group % 2 * 32 + 16 * h);
        const Words<4> high = Words<4>::load(row, 128 + group / 4 * 32 + 16 * h);
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            const uint upper = high.word[i] >> (group % 4 * 2) & 0x03030303u;
            bytes[i] = (low.word[i] >> (group % 4 / 2 * 4) & 0x0f0f0f0fu) | upper << 4;
        }
    }

    uint2 four(uint q) const { return four_halves(q, half2(1056.0h), d[half_index]); }

    uint4 run(uint r) const { return uint4(four(bytes[2 * (r % 2)]), four(bytes[2 * (r % 2) + 1])); }
};

// Eight numbers of 16 bits as halves.
inline uint4 as_halves(uint4 bits, half) { return bits; }
inline uint4 as_halves(uint4 bits, ushort) {
    const float4 low = as_type<float4>(uint4(bits.x << 16, bits.x & 0xffff0000u, bits.y << 16, bits.y & 0xffff0000u));
    const float4 high = as_type<float4>(uint4(bits.z << 16, bits.z & 0xffff0000u, bits.w << 16, bits.w & 0xffff0000u));
    return pack(low, high);
}

// Rows of whole spans begin at whole vectors.
template <typename T>
struct LaneSpan<FormatPlain<T>> {
    threadgroup const uint4 *span;
    bool is_there;
    uint4 bits[2];

    void load(threadgroup const uint4 *row, uint, uint index, bool exists) {
        span = row + index * SPAN_RUNS;
        is_there = exists;
    }

    void fetch(uint h) {
        bits[0] = span[2 * h];
        bits[1] = span[2 * h + 1];
    }

    uint4 run(uint r) const { return is_there ? as_halves(bits[r % 2], T(0)) : uint4(0); }
};

// The last bytes of the weights, an even number below 16, and zeros behind them.
inline void copy_rest(threadgroup ushort *to, device const ushort *from, uint n_bytes) {
#pragma unroll(1)
    for (uint i = 0; i < 8; i++) {
        to[i] = 2 * i < n_bytes ? from[i] : ushort(0);
    }
}

// The rows of weights of a SIMD group, and its ring in threadgroup memory. Of every eight rows, four lanes copy one.
template <typename F>
struct StagedRows {
    typedef StagedStep<F> Step;
    static constant constexpr uint PASSES = Step::OUTPUTS / 8;
    // Vectors of a step of a row that begins anywhere, and those of a lane.
    static constant constexpr uint NEEDED = (Step::BYTES + (Step::ANYWHERE ? 14 : 0) + 15) / 16;
    static constant constexpr uint COPIES = (NEEDED + 3) / 4;
    static_assert(NEEDED <= Step::VECTORS, "a row has its place");
    threadgroup uint4 *ring;
    uint lane;
    device const uchar *first;  // a multiple of 16 bytes, in or before the first row
    uint first_begin;           // where the first row begins behind that
    uint row_bytes;
    uint last_row;  // the last of the rows that there is
    uint end;       // of the weights, behind `first`; or less, if it is far

    // Of the weights (n_rows, n_spans), the rows from first_n on; where there are none, the last.
    void begin(device const uchar *weight, uint n_rows, uint first_n, uint n_spans) {
        row_bytes = n_spans * Step::BYTES / Step::SPANS;
        const uint row = min(first_n, n_rows - 1);
        const ulong place = ulong(row) * row_bytes;
        first = weight + (place & ~15ul);
        first_begin = uint(place & 15);
        last_row = min(Step::OUTPUTS, n_rows - row) - 1;
        end = uint(min(first_begin + ulong(n_rows - row) * row_bytes, 0xffffffc0ul));
    }

    // Where a step of a row begins, behind `first`.
    uint place(uint row, uint step) const { return first_begin + min(row, last_row) * row_bytes + step * Step::BYTES; }

    // Begins to copy a step to a stage of the ring, if there is such a step: more than the step where that is as easy, and nothing
    // behind the weights. All lanes must call it.
    void copy(uint step, uint n_steps, uint stage_index, thread nvidia::AsyncCopies &copies) {
        if (step >= n_steps) {
            return;
        }
        threadgroup uint4 *stage = ring + stage_index * Step::STAGE + lane / 4 * Step::VECTORS + lane % 4;
        if (place(last_row, step) + NEEDED * 16 > end) {
            return copy_last(stage, step, copies);
        }
#pragma unroll
        for (uint pass = 0; pass < PASSES; pass++) {
            const uint from = (place(8 * pass + lane / 4, step) & ~15u) + lane % 4 * 16;
#pragma unroll
            for (uint i = 0; i < COPIES; i++) {
                if (4 * i + 4 <= NEEDED || 4 * i + lane % 4 < NEEDED) {
                    copies.copy(stage + 8 * pass * Step::VECTORS + 4 * i, (device const uint4 *)(first + from) + 4 * i);
                }
            }
        }
    }

    // The same where the weights end.
    void copy_last(threadgroup uint4 *stage, uint step, thread nvidia::AsyncCopies &copies) {
#pragma unroll(1)
        for (uint pass = 0; pass < PASSES; pass++) {
            const uint from = (place(8 * pass + lane / 4, step) & ~15u) + lane % 4 * 16;
            threadgroup uint4 *to = stage + 8 * pass * Step::VECTORS;
#pragma unroll(1)
            for (uint i = 0; 4 * i + lane % 4 < NEEDED; i++) {
                const uint at = from + 64 * i;
                if (at + 16 <= end) {
                    copies.copy(to + 4 * i, (device const uint4 *)(first + at));
                } else if (at < end) {
                    copy_rest((threadgroup ushort *)(to + 4 * i), (device const ushort *)(first + at), end - at);
                }
            }
        }
    }
};

// One of three pointers. Not by `?:` on members, which would be put into memory.
template <typename T>
inline T pick(uint index, T zero, T one, T two) {
    return index == 0 ? zero : index == 1 ? one : two;
}

// Which weight a threadgroup has, the rows of that, and which of its threadgroups this one is.
struct ChosenWeight {
    uint index;
    uint n;
    uint group;
};

inline ChosenWeight choose_weight(constant DecodeGemmParams &params, uint group, uint outputs) {
    // Those of a threadgroup, a power of two.
    const uint shift = ctz(outputs);
    const uint round_up = outputs - 1;
    const uint groups_0 = (params.N0 + round_up) >> shift;
    const uint groups_1 = (params.N1 + round_up) >> shift;
    if (group < groups_0) {
        return { 0, params.N0, group };
    }
    if (group < groups_0 + groups_1) {
        return { 1, params.N1, group - groups_0 };
    }
    return { 2, params.N2, group - groups_0 - groups_1 };
}

// The tiles of x of a threadgroup, and a ring of quads of them that the SIMD groups of a split share.
template <uint TILES>
struct StagedTiles {
    static constant constexpr uint STAGE = TILES * QUAD_VECTORS;
    threadgroup uint4 *ring;
    device const uint4 *first;
    uint tile_vectors;  // from one tile to the next
    uint last_tile;
    uint n_quads;
    uint lane;
    uint column;  // of the SIMD groups that share it: each copies every n_columns-th tile
    uint n_columns;

    // Begins to copy a quad to a stage of the ring, if there is such a quad. Tiles that are not there are the last one again: what
    // is multiplied with them is not stored.
    void copy(uint quad, uint stage_index, thread nvidia::AsyncCopies &copies) {
        if (quad >= n_quads) {
            return;
        }
#pragma unroll(1)
        for (uint tile = column; tile < TILES; tile += n_columns) {
            device const uint4 *from = first + min(tile, last_tile) * tile_vectors + quad * QUAD_VECTORS + lane;
            threadgroup uint4 *to = ring + stage_index * STAGE + tile * QUAD_VECTORS + lane;
#pragma unroll
            for (uint i = 0; i < QUAD_VECTORS; i += SIMD_WIDTH) {
                copies.copy(to + i, from + i);
            }
        }
    }
};

// The sums of a lane: of outputs n and n + 8 of each matrix and rows m and m + 1 of each tile.
template <uint MATRICES, uint TILES>
struct LaneSums {
    float4 sums[MATRICES][TILES];
    uint m;
    uint n;
    uint n_rows;
    uint n_outputs;

    // The two sums of output `lower` of a matrix, and that output; one that there is.
    float2 pair(uint j, uint i, uint lower) const { return lower == 0 ? sums[j][i].xy : sums[j][i].zw; }
    void set_pair(uint j, uint i, uint lower, float2 pair) {
        sums[j][i] = lower == 0 ? float4(pair, sums[j][i].zw) : float4(sums[j][i].xy, pair);
    }
    uint output(uint j, uint lower) const { return n + j * MATRIX_OUTPUTS + lower * 8; }
    uint known_output(uint j, uint lower) const { return min(output(j, lower), n_outputs - 1); }
    uint known_row(uint i) const { return min(m + i * X_ROWS, n_rows - 1); }

    void clear() {
#pragma unroll
        for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
            for (uint i = 0; i < TILES; i++) {
                sums[j][i] = float4(0.0f);
            }
        }
    }

    // Times the factor of each row; 0 where there is no such row.
    void scale(device const float *factors) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            const uint row = m + i * X_ROWS;
            const float first = factors[known_row(i)];
            const float second = factors[min(row + 1, n_rows - 1)];
#pragma unroll
            for (uint j = 0; j < MATRICES; j++) {
                const float4 scaled = sums[j][i] * float4(first, second, first, second);
                sums[j][i].xz = row < n_rows ? scaled.xz : float2(0.0f);
                sums[j][i].yw = row + 1 < n_rows ? scaled.yw : float2(0.0f);
            }
        }
    }

    // Leaves all rows of the tiles that there are; those of an output lie behind each other, `stride` of them.
    void leave(device float *part, uint stride) const {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            if (m + i * X_ROWS < stride) {
#pragma unroll
                for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                    for (uint lower = 0; lower < 2; lower++) {
                        if (output(j, lower) < n_outputs) {
                            *(device float2 *)(part + output(j, lower) * stride + m + i * X_ROWS) = pair(j, i, lower);
                        }
                    }
                }
            }
        }
    }

    // Adds a part. Everything that is read is there, so that all of it can be asked for at once.
    void add(device const float *part, uint stride) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
#pragma unroll
            for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                for (uint lower = 0; lower < 2; lower++) {
                    const uint row = min(m + i * X_ROWS, stride - 2);
                    const float2 other = *(device const float2 *)(part + known_output(j, lower) * stride + row);
                    set_pair(j, i, lower, pair(j, i, lower) + other);
                }
            }
        }
    }

    // Adds beta times what y holds.
    void add_before(device const float *y, float beta) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            device const float *first = y + ulong(known_row(i)) * n_outputs;
            device const float *second = y + ulong(min(m + i * X_ROWS + 1, n_rows - 1)) * n_outputs;
#pragma unroll
            for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                for (uint lower = 0; lower < 2; lower++) {
                    const uint at = known_output(j, lower);
                    set_pair(j, i, lower, pair(j, i, lower) + beta * float2(first[at], second[at]));
                }
            }
        }
    }

    void store(device float *y) const {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
#pragma unroll
            for (uint next = 0; next < 2; next++) {
                const uint row = m + i * X_ROWS + next;
                if (row < n_rows) {
                    device float *to = y + ulong(row) * n_outputs;
#pragma unroll
                    for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                        for (uint lower = 0; lower < 2; lower++) {
                            if (output(j, lower) < n_outputs) {
                                to[output(j, lower)] = next == 0 ? pair(j, i, lower).x : pair(j, i, lower).y;
                            }
                        }
                    }
                }
            }
        }
    }
};

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
        mine.scale(scale);
    }
    if (params.n_parts > 1) {
        const uint stride = (params.M + X_ROWS - 1) / X_ROWS * X_ROWS;
        const ulong part_stride = ulong(params.N0 + params.N1 + params.N2) * stride;
        device float *all = parts + pick(chosen.index, 0u, params.N0, params.N0 + params.N1) * stride;
        if (split == 0) {
            mine.leave(all + group.z * part_stride, stride);
        }
        const uint n_m = (params.M + TILES * X_ROWS - 1) / (TILES * X_ROWS);
        device uint *counter = arrived + group.y * n_m + group.x;
        // Nobody reads x any more.
        if (!are_all_there(counter, (threadgroup uint *)memory, params.n_parts, thread_index)) {
            return;
        }
        if (thread_index == 0) {
            *counter = 0;
        }
        if (split == 0) {
            mine.clear();
            for (uint part = 0; part < params.n_parts; part++) {
                mine.add(all + part * part_stride, stride);
            }
        }
    }
    if (split == 0) {
        device float *y = pick(chosen.index, y_0, y_1, y_2);
        if (params.beta != 0.0f) {
            mine.add_before(y, params.beta);
        }
        mine.store(y);
    }
}
