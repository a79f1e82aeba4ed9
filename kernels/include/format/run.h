// The unit in which every weight format is read: a run of 8 consecutive values of a row.
//
// Within a run every format is affine, value = scale * q + offset, because no format has groups of
// fewer than 16 values. A product therefore needs no dequantised weights at all:
//     sum(value * x) = scale * sum(q * x) + offset * sum(x)
// and sum(x) is the same for all rows.
//
// A format is a struct with
//     Row          where a row lies,
//     BLOCK        values that belong together: a row is a whole number of blocks,
//     PAIR_GAP     runs r and r + PAIR_GAP come from the same bytes: reading both costs the loads of one,
//     HAS_OFFSET   whether the offset can be other than 0,
//     row(…)       finds a row,
//     run(row, r)  reads run r of it,
//     value(row, i) reads one value; only formats of BLOCK 1 have rows that do not end with a run.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

constant constexpr uint RUN = 8;

struct Run {
    float4 low;    // q of values 0 to 3
    float4 high;   // q of values 4 to 7
    float scale;
    float offset;
};

// Where the rows of a weight matrix lie, whatever params struct says so.
struct WeightLayout {
    uint n_rows;
    uint row_len;      // values from one row to the next
    // MLX only: values of a group, type of the scales, and byte offsets of the three parts in the binding.
    uint group_size;
    uint scale_type;
    uint packed_at;
    uint scales_at;
    uint biases_at;
};

inline WeightLayout weight_layout(constant GEMMParams &params) {
    return WeightLayout{ params.N, params.ldb, 0, 0, 0, 0, 0 };
}
inline WeightLayout weight_layout(constant MLXParams &params) {
    return WeightLayout{ params.N, params.K, params.group_size, params.scale_type,
                         params.packed_at, params.scales_at, params.biases_at };
}
inline WeightLayout weight_layout(constant EmbeddingParams &params) {
    return WeightLayout{ params.vocab_size, params.dim, 0, 0, 0, 0, 0 };
}

// Values of a row that come in whole runs; the rest, fewer than 8, is read one by one.
template <typename F>
inline uint whole_runs(uint row_len) {
    return F::BLOCK < RUN ? row_len / RUN : row_len / F::BLOCK * (F::BLOCK / RUN);
}

// The values of a run.
inline float4 low_values(Run w) { return w.scale * w.low + w.offset; }
inline float4 high_values(Run w) { return w.scale * w.high + w.offset; }

// Four packed fields: the bits of `mask` from bit `shift` on of each byte.
inline uint4 byte_fields(uint bytes, uint shift, uint mask) {
    return uint4(bytes >> shift, bytes >> (shift + 8), bytes >> (shift + 16), bytes >> (shift + 24)) & mask;
}

// 1 + q / 16 for the low nibble q of each byte: the nibbles are the first bits of the fractions of floats, so that
// nothing is converted.
inline float4 one_and_sixteenths(uint bytes) {
    const uint high = ((bytes << 3) & 0x78787878u) | 0x80808080u;
    const uint4 bits = uint4(high << 16, high << 8, high, high >> 8);
    return as_type<float4>((bits & 0x00ff0000u) | 0x3f000000u);
}

// The four lowest bits, one each.
inline uint4 four_bits(uint bits) { return uint4(bits, bits >> 1, bits >> 2, bits >> 3) & 1u; }

// 8 bytes at an even address: blocks of most formats are aligned to 2 bytes only. A packed vector has
// the alignment of its elements, and is still one load.
inline uint2 load_8_bytes(device const uchar *bytes) {
    return as_type<uint2>(ushort4(*(device const packed_ushort4 *)bytes));
}
