// Rows that a threadgroup walks through together.
//
// A row whose length is a multiple of 4 is read as float4: bindings start at a multiple of 16 bytes,
// so that every row does. Other rows are read element by element. The loops take whole
// threadgroups' strides, so that neighbouring threads touch neighbouring memory.
#pragma once

#include <metal_stdlib>

using namespace metal;

// A thread's share of a row of `dim` elements: vectors first, first + stride, … of the
// first n_vec, then elements of the rest in the same stride.
struct RowShare {
    uint dim;
    uint n_vec;
    uint first;
    uint stride;
};

inline RowShare share_row(uint dim, uint first, uint stride) {
    return RowShare{dim, dim % 4 == 0 ? dim / 4 : 0, first, stride};
}

// This thread's part of the sum of the row's squares.
inline float share_of_squares(device const float *row, RowShare share) {
    device const float4 *vectors = (device const float4 *)row;
    float sum = 0.0f;
    for (uint i = share.first; i < share.n_vec; i += share.stride) {
        const float4 v = vectors[i];
        sum += dot(v, v);
    }
    for (uint i = 4 * share.n_vec + share.first; i < share.dim; i += share.stride) {
        sum += row[i] * row[i];
    }
    return sum;
}

// 1 / sqrt(mean of squares + eps)
inline float inverse_rms(float square_sum, uint dim, float eps) {
    return 1.0f / sqrt(square_sum / float(dim) + eps);
}
