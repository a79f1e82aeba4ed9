// turn_heads_f32: turns the heads of a (n_rows, n_heads, head_dim) matrix in place, by cosines and sines of each row
//
//     (x[a], x[b]) = (x[a] cos[d] - x[b] sin[d], x[a] sin[d] + x[b] cos[d]),   a = d, b = d + head_dim / 2
//
// The turns of a row are head_dim numbers: all cosines, then all sines. All heads of the row have them in common.
//
// Launch:  one thread a pair, 256 a threadgroup; x walks the pairs of a row, y the rows.
// Memory:  each element is read and written once, by one thread.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void turn_heads_f32(
    device float *x                     [[buffer(0)]],
    device const float *turns           [[buffer(1)]],
    constant TurnHeadsParams &params    [[buffer(2)]],
    uint2 at                            [[thread_position_in_grid]]
) {
    const uint head_dim = params.head_dim;
    const uint half_dim = head_dim / 2;
    const uint row = at.y;
    const uint head = at.x / half_dim;
    const uint pair = at.x % half_dim;
    if (head >= params.n_heads || row >= params.n_rows) {
        return;
    }
    device const float *turn = turns + ulong(row) * head_dim;
    const float cosine = turn[pair];
    const float sine = turn[half_dim + pair];
    device float *values = x + (ulong(row) * params.n_heads + head) * head_dim;
    const float a = values[pair];
    const float b = values[half_dim + pair];
    values[pair] = a * cosine - b * sine;
    values[half_dim + pair] = a * sine + b * cosine;
}
