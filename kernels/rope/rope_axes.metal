// rope_axes_neox_f32: turns the heads of a (n_rows, n_heads, head_dim) matrix in place, where rows of images have positions on three
// axes.
//
//     (x[a], x[b]) = (x[a] cos - x[b] sin, x[a] sin + x[b] cos),   angle as in include/rope.h
//
// Pairs (a, b) are (d, d + turned_dim / 2). Each pair turns by the position on one axis: time, height or width. The pairs of an axis
// follow each other, or they are interleaved: of pairs 3i, 3i + 1 and 3i + 2 the second turns by height and the third by width, as long
// as these have pairs. Rows of tokens have one position on all axes.
//
// Launch:  one thread a pair, 256 a threadgroup; x walks the pairs of a row, y the rows.
// Memory:  each element is read and written once, by one thread.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/rope.h"
#include "include/row_table.h"

using namespace metal;

// 0: time, 1: height, 2: width.
inline uint axis_of(uint pair, constant RoPEAxesParams &params) {
    if (params.is_interleaved != 0) {
        const uint axis = pair % 3;
        const uint n_pairs = axis == 1 ? params.height_pairs : params.width_pairs;
        return axis != 0 && pair < 3 * n_pairs ? axis : 0;
    }
    const uint height = params.time_pairs;
    const uint width = height + params.height_pairs;
    const uint end = width + params.width_pairs;
    return pair < height || pair >= end ? 0 : pair < width ? 1 : 2;
}

kernel void rope_axes_neox_f32(
    device float *x                   [[buffer(0)]],
    constant RoPEAxesParams &params   [[buffer(1)]],
    device const Row *rows            [[buffer(2)]],
    device const float *freqs         [[buffer(3)]],
    device const uint *places         [[buffer(4)]],
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
    const uint axis = is_of_image(rows[row]) ? axis_of(pair, params) : 0;
    const uint position = axis == 0 ? rows[row].position : places[2 * row + axis - 1];
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const Rotation rotation = frequencies.at(float(position), pair);

    device float *values = x + (ulong(row) * params.n_heads + head) * head_dim;
    const uint a = SplitHalves::first(pair, head_dim);
    const uint b = SplitHalves::second(pair, head_dim);
    const float2 turned = rotation.apply(float2(values[a], values[b]));
    values[a] = turned.x;
    values[b] = turned.y;
}
