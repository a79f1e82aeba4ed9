// Plain numbers: f32, f16, bf16. Rows of any length, aligned as one number.
#pragma once

#include "include/format/run.h"

// A ushort here is a bf16: the upper half of a float, which needs no hardware support to be read.
inline float plain_value(float v) { return v; }
inline float plain_value(half v) { return float(v); }
inline float plain_value(ushort v) { return as_type<float>(uint(v) << 16); }

inline float4 plain_values(device const float *p) { return float4(*(device const packed_float4 *)p); }
inline float4 plain_values(device const half *p) { return float4(half4(*(device const packed_half4 *)p)); }
inline float4 plain_values(device const ushort *p) {
    return as_type<float4>(uint4(ushort4(*(device const packed_ushort4 *)p)) << 16);
}

template <typename T>
struct FormatPlain {
    typedef device const T *Row;
    static constant constexpr uint BLOCK = 1;
    static constant constexpr uint PAIR_GAP = 1;
    static constant constexpr bool HAS_OFFSET = false;

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return (Row)weight + ulong(index) * at.row_len;
    }
    static Run run(Row row, uint index) {
        row += RUN * index;
        return Run{ plain_values(row), plain_values(row + 4), 1.0f, 0.0f };
    }
    static float value(Row row, uint index) { return plain_value(row[index]); }
};

typedef FormatPlain<float> FormatF32;
typedef FormatPlain<half> FormatF16;
typedef FormatPlain<ushort> FormatBF16;
