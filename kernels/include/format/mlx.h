// MLX's affine formats: value = scale * q + bias, one scale and one bias for each group of a row.
//
// The buffer is [packed values | scales | biases]. A row of packed values is one little-endian stream
// of bits, value i in bits [i * BITS, (i + 1) * BITS): a run of 8 is BITS bytes long. Scales and biases
// are halves, (n_rows, n_groups) each.
//
// Runs of an even number of bytes are aligned to 2, those of 3 and 5 bytes to 1.
#pragma once

#include "include/format/run.h"
#include "include/matmul_constants.h"

// The first 32 bits and the rest of the stream of a run.
template <uint BITS>
inline uint2 mlx_stream(device const uchar *p) {
    uint2 words = uint2(0, 0);
    if (BITS % 2 == 0) {
        device const ushort *units = (device const ushort *)p;
        for (uint i = 0; i < BITS / 2; i++) {
            words[i / 2] |= uint(units[i]) << (i % 2 * 16);
        }
    } else {
        for (uint i = 0; i < BITS; i++) {
            words[i / 4] |= uint(p[i]) << (i % 4 * 8);
        }
    }
    return words;
}

// Four values from the low end of a word.
template <uint BITS>
inline float4 mlx_values(uint word) {
    return float4(uint4(word, word >> BITS, word >> (2 * BITS), word >> (3 * BITS)) & ((1u << BITS) - 1u));
}

struct MlxRow {
    device const uchar *packed;
    device const half *scales;
    device const half *biases;
    uint group_runs;
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
        device const half *scales = (device const half *)(weight + (at.scales_at & ~1u)) + index * n_groups;
        return MlxRow{ weight + index * (ulong(n_runs) * BITS), scales, scales + at.n_rows * n_groups, group_runs };
    }
    static Run run(Row row, uint index) {
        const uint2 words = mlx_stream<BITS>(row.packed + index * BITS);
        // The last four values begin at bit 4 * BITS; a shift by 32 is none.
        const uint rest = BITS == 8 ? words.y : (words.x >> (4 * BITS % 32)) | (words.y << ((32 - 4 * BITS) % 32));
        const uint group = index / row.group_runs;
        return Run{ mlx_values<BITS>(words.x), mlx_values<BITS>(rest), row.scales[group], row.biases[group] };
    }
    static float value(Row, uint) { return 0.0f; }  // rows end with a group
};

typedef FormatMlx<2> FormatMlxQ2;
typedef FormatMlx<3> FormatMlxQ3;
typedef FormatMlx<4> FormatMlxQ4;
typedef FormatMlx<5> FormatMlxQ5;
typedef FormatMlx<6> FormatMlxQ6;
typedef FormatMlx<8> FormatMlxQ8;
