// MLX's affine formats: value = scale * q + bias, one scale and one bias for each group of a row.
//
// The three parts of a matrix lie where the file has them: packed values (n_rows, row bytes), scales and biases
// (n_rows, n_groups). A row of packed values is one little-endian stream of bits, value i in bits [i * BITS, (i + 1) * BITS):
// a run of 8 is BITS bytes long.
//
// MLX does not align what it writes, so that a part may begin at any byte. Everything is therefore loaded in whole words,
// which are shifted into place; a word is read only if it holds a byte that is asked for. The binding begins at a multiple
// of 4 bytes, and ends with a word.
#pragma once

#include "include/format/byte_stream.h"
#include "include/matmul_constants.h"

// The first 32 bits and the rest of the stream of a run.
template <uint BITS>
inline uint2 mlx_stream(ByteStream row, uint run) {
    const uint at = row.first + run * BITS;
    const uint shift = at % 4 * 8;
    device const uint *from = row.words + at / 4;
    const uint a = from[0];
    const uint b = shift + 8 * BITS > 32 ? from[1] : 0;
    const uint c = shift + 8 * BITS > 64 ? from[2] : 0;
    return uint2(join_words(a, b, shift), join_words(b, c, shift));
}

// Scale or bias `index`: half, bfloat or float, by the number that `MLXParams` documents.
inline float mlx_scale(ByteStream row, uint index, uint type) {
    const uint bytes = type == 2 ? 4 : 2;
    const uint at = row.first + index * bytes;
    const uint shift = at % 4 * 8;
    device const uint *from = row.words + at / 4;
    const uint high = shift + 8 * bytes > 32 ? from[1] : 0;
    const uint bits = join_words(from[0], high, shift);
    return type == 0 ? float(as_type<half>(ushort(bits))) : as_type<float>(type == 1 ? bits << 16 : bits);
}

// Four values from the low end of a word.
template <uint BITS>
inline float4 mlx_values(uint word) {
    return float4(uint4(word, word >> BITS, word >> (2 * BITS), word >> (3 * BITS)) & ((1u << BITS) - 1u));
}

struct MlxRow {
    ByteStream packed;
    ByteStream scales;
    ByteStream biases;
    uint group_runs;
    uint scale_type;
};

template <uint BITS>
struct FormatMlx {
    typedef MlxRow Row;
    static constant constexpr uint BLOCK = 32;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = true;

    // Counted in whole runs, so that no group size reads outside of the row's scales.
    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        const uint n_runs = at.row_len / BLOCK * (BLOCK / RUN);
        const uint group_runs = max(matmul_group_size(at.group_size) / RUN, 1u);
        const ulong n_groups = (n_runs + group_runs - 1) / group_runs;
        const uint scale_type = matmul_scale_type(at.scale_type);
        const ulong before = index * n_groups * (scale_type == 2 ? 4 : 2);
        return MlxRow{
            byte_stream(weight, at.packed_at + index * (ulong(n_runs) * BITS)),
            byte_stream(weight, at.scales_at + before),
            byte_stream(weight, at.biases_at + before),
            group_runs,
            scale_type,
        };
    }
    static Run run(Row row, uint index) {
        const uint2 words = mlx_stream<BITS>(row.packed, index);
        // The last four values begin at bit 4 * BITS; a shift by 32 is none.
        const uint rest = BITS == 8 ? words.y : (words.x >> (4 * BITS % 32)) | (words.y << ((32 - 4 * BITS) % 32));
        const uint group = index / row.group_runs;
        return Run{ mlx_values<BITS>(words.x), mlx_values<BITS>(rest), mlx_scale(row.scales, group, row.scale_type),
                    mlx_scale(row.biases, group, row.scale_type) };
    }
    static float value(Row, uint) { return 0.0f; }  // rows end with a group
};

typedef FormatMlx<2> FormatMlxQ2;
typedef FormatMlx<3> FormatMlxQ3;
typedef FormatMlx<4> FormatMlxQ4;
typedef FormatMlx<5> FormatMlxQ5;
typedef FormatMlx<6> FormatMlxQ6;
typedef FormatMlx<8> FormatMlxQ8;
