// copy_pieces_f32: y[r * y_row + p * y_piece + i] = x[r * x_row + p * x_piece + i], i < width
//
// Launch:  x along the piece, one thread for four elements; y a piece of a row each. Threadgroups of 256.
// Memory:  each element of y is written once. With x_piece = 0, an element of x is read once for each piece.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void copy_pieces_f32(
    device const float *x               [[buffer(0)]],
    device float *y                     [[buffer(1)]],
    constant CopyPiecesParams &params   [[buffer(2)]],
    uint2 index                         [[thread_position_in_grid]]
) {
    if (index.y >= params.n_rows * params.pieces) {
        return;
    }
    const uint row = index.y / params.pieces;
    const uint piece = index.y % params.pieces;
    const ulong from = ulong(row) * params.x_row + ulong(piece) * params.x_piece;
    const ulong to = ulong(row) * params.y_row + ulong(piece) * params.y_piece;
    for (uint i = 4 * index.x; i < min(4 * index.x + 4, params.width); ++i) {
        y[to + i] = x[from + i];
    }
}
