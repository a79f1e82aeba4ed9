// How shared_gemm.h stages the weights of each format, and how a lane decodes a span of them to halves.
//
// A SIMD group takes K in steps of whole spans. A row of a step lies in threadgroup memory as it is stored.
#pragma once

#include "include/few_rows.h"

// Quads of x that there is room for, and that are under way beside the one that is multiplied.
constant constexpr uint X_STAGES = 3;
constant constexpr uint X_AHEAD = X_STAGES - 1;

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

// A block in threadgroup memory that begins with a half, at a whole word or in the middle of one.
struct StagedBlock {
    threadgroup const uint *words;
    bool begins_in_middle;

    // The half, twice.
    half2 scale() const { return as_type<half2>(nvidia::permute(words[0], 0, begins_in_middle ? 0x3232u : 0x1010u)); }
    // Word i of what follows the half. Two bytes behind the block may be read, which are in the last vector of its row.
    uint word(uint i) const { return nvidia::permute(words[i], words[i + 1], begins_in_middle ? 0x7654u : 0x5432u); }
};

// Block `index` of a row that begins so many bytes behind a multiple of 16.
inline StagedBlock staged_block(threadgroup const uint4 *row, uint begin, uint index, uint block_bytes) {
    const uint at = begin % 16 + index * block_bytes;
    return { (threadgroup const uint *)row + at / 4, at % 4 != 0 };
}

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
    half2 d;
    uint qs[4];

    void load(threadgroup const uint4 *row, uint begin, uint index, bool exists) {
        const StagedBlock block = staged_block(row, begin, index, sizeof(block_q4_0));
        d = exists ? block.scale() : half2(0.0h);
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            qs[i] = block.word(i);
        }
    }

    void fetch(uint) {}

    uint2 four(uint word, uint shift) const { return four_halves(word >> shift & 0x0f0f0f0fu, half2(1032.0h), d); }

    uint4 run(uint r) const {
        const uint shift = 4 * (r / 2);
        return uint4(four(qs[2 * (r % 2)], shift), four(qs[2 * (r % 2) + 1], shift));
    }
};

template <>
struct LaneSpan<FormatQ8_0> {
    StagedBlock block;
    half2 d;
    uint qs[4];

    void load(threadgroup const uint4 *row, uint begin, uint index, bool exists) {
        block = staged_block(row, begin, index, sizeof(block_q8_0));
        d = exists ? block.scale() : half2(0.0h);
    }

    void fetch(uint h) {
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            qs[i] = block.word(4 * h + i);
        }
    }

    uint2 four(uint word) const { return four_halves(word ^ 0x80808080u, half2(1152.0h), d); }

    uint4 run(uint r) const { return uint4(four(qs[2 * (r % 2)]), four(qs[2 * (r % 2) + 1])); }
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

    // One shift takes words that begin in the middle of one, and the bits of the group. The words behind the last are in the block.
    void fetch(uint h) {
        half_index = h;
        threadgroup const uint *low = row.words + group / 4 * 16 + group % 2 * 8 + 4 * h;
        threadgroup const uint *high = row.words + 32 + group / 4 * 8 + 4 * h;
        const uint low_bits = 16 * row.odd + group % 4 / 2 * 4;
        const uint high_bits = 16 * row.odd + group % 4 * 2;
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            const uint lower = nvidia::shift_pair(low[i], low[i + 1], low_bits) & 0x0f0f0f0fu;
            const uint upper = nvidia::shift_pair(high[i], high[i + 1], high_bits) & 0x03030303u;
            bytes[i] = 16 * upper + lower;
        }
    }

    uint2 four(uint q) const { return four_halves(q, half2(1056.0h), d[half_index]); }

    uint4 run(uint r) const { return uint4(four(bytes[2 * (r % 2)]), four(bytes[2 * (r % 2) + 1])); }
};

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
