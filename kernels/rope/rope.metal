// rope_f32, rope_neox_f32: turns the heads of a (n_rows, n_heads, head_dim) matrix in place.
//
//     (x[a], x[b]) = (x[a] cos - x[b] sin, x[a] sin + x[b] cos),   angle as in include/rope.h
//
// Pairs (a, b) are (2d, 2d + 1), or (d, d + turned_dim / 2) in the NeoX style (include/rope.h). Each row has a position of its own.
//
// Launch:  one thread a pair, 256 a threadgroup; x walks the pairs of a row, y the rows.
// Memory:  each element is read and written once, by one thread.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/rope.h"
#include "include/row_table.h"

using namespace metal;

template <typename Style>
kernel void rope(
    device float *x                   [[buffer(0)]],
    constant RoPEParams &params       [[buffer(1)]],
    device const Row *rows            [[buffer(2)]],
    device const float *freqs         [[buffer(3)]],
    uint2 at                          [[thread_position_in_grid]]
) {
    const uint head_dim = params.head_dim;
    const uint half_dim = head_dim / 2;
    const uint row = at.y;
    const uint head = at.x / half_dim;
    const uint pair = at.x % half_dim;
    if (head >= params.n_heads || row >= params.n_rows) {
        return;
    }
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const Rotation rotation = frequencies.at(float(rows[row].position), pair);

    const uint stride = params.row_stride == 0 ? params.n_heads * head_dim : params.row_stride;
    device float *values = x + ulong(row) * stride + head * head_dim;
    const uint a = Style::first(pair, head_dim);
    const uint b = Style::second(pair, head_dim);
    const float2 turned = rotation.apply(float2(values[a], values[b]));
    values[a] = turned.x;
    values[b] = turned.y;
}

typedef decltype(rope<Interleaved>) rope_t;

template [[host_name("rope_f32")]] kernel rope_t rope<Interleaved>;
template [[host_name("rope_neox_f32")]] kernel rope_t rope<SplitHalves>;
