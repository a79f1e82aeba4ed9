// Plain numbers: f32, f16, bf16. Rows of any length, aligned as one number.
#pragma once

#include "include/format/run.h"
#include "include/format/span.h"

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

// Plain numbers of one type: how many vectors of 16 bytes a run has, and its values.
template <typename T>
struct PlainBits;

template <>
struct PlainBits<half> {
    static constant constexpr uint VECTORS = 1;
    static float4 low(thread const uint4 *bits) { return float4(as_type<half4>(bits[0].xy)); }
    static float4 high(thread const uint4 *bits) { return float4(as_type<half4>(bits[0].zw)); }
};

template <>
struct PlainBits<ushort> {
    static constant constexpr uint VECTORS = 1;
    static float4 low(thread const uint4 *bits) { return as_type<float4>(uint4(as_type<ushort4>(bits[0].xy)) << 16); }
    static float4 high(thread const uint4 *bits) { return as_type<float4>(uint4(as_type<ushort4>(bits[0].zw)) << 16); }
};

template <>
struct PlainBits<float> {
    static constant constexpr uint VECTORS = 2;
    static float4 low(thread const uint4 *bits) { return as_type<float4>(bits[0]); }
    static float4 high(thread const uint4 *bits) { return as_type<float4>(bits[1]); }
};

// 32 plain numbers, by 16 bytes where rows are whole vectors of 8 numbers.
template <typename T>
struct Spans<FormatPlain<T>> {
    static constant constexpr uint VECTORS = PlainBits<T>::VECTORS * SPAN_RUNS;
    struct Row {
        device const T *first;
        bool is_aligned;
    };
    struct Span {
        uint4 bits[VECTORS];
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return { (device const T *)weight + ulong(index) * at.row_len, at.row_len % 8 == 0 };
    }
    static Span load(Row row, uint index) {
        Span span;
        device const T *from = row.first + SPAN * index;
#pragma unroll
        for (uint i = 0; i < VECTORS; i++) {
            if (row.is_aligned) {
                span.bits[i] = ((device const uint4 *)from)[i];
            } else {
                device const packed_ushort4 *p = (device const packed_ushort4 *)((device const ushort *)from + 8 * i);
                span.bits[i] = uint4(as_type<uint2>(ushort4(p[0])), as_type<uint2>(ushort4(p[1])));
            }
        }
        return span;
    }
    static Run run(thread const Span &span, uint r) {
        thread const uint4 *bits = span.bits + PlainBits<T>::VECTORS * r;
        return Run{ PlainBits<T>::low(bits), PlainBits<T>::high(bits), 1.0f, 0.0f };
    }
};
