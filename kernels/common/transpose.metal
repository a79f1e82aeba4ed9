// transpose_f32: y[c][r] = x[r][c], from (rows, cols) to (cols, rows)
//
// Launch:  one threadgroup of 32 x 8 threads for a tile of 32 x 32, four rows of it a thread.
// Memory:  a tile is read along its rows and written along its columns, so that both touch
//          consecutive memory. 4,224 bytes of threadgroup memory: a column more than the tile has,
//          so that a column's elements lie in different banks.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

constant constexpr uint TILE = 32;
constant constexpr uint TILE_ROWS = 8;  // rows of a tile that are in flight at once

static_assert(TILE * (TILE + 1) * sizeof(float) <= 32768, "threadgroup memory");

kernel void transpose_f32(
    device const float *x          [[buffer(0)]],
    device float *y                [[buffer(1)]],
    constant MatrixParams &params  [[buffer(2)]],
    uint2 tile_at                  [[threadgroup_position_in_grid]],
    uint2 place                    [[thread_position_in_threadgroup]]
) {
    threadgroup float tile[TILE][TILE + 1];

    const uint first_col = tile_at.x * TILE;
    const uint first_row = tile_at.y * TILE;
    for (uint r = place.y; r < TILE; r += TILE_ROWS) {
        const uint row = first_row + r;
        const uint col = first_col + place.x;
        if (row < params.rows && col < params.cols) {
            tile[r][place.x] = x[row * params.cols + col];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint c = place.y; c < TILE; c += TILE_ROWS) {
        const uint col = first_col + c;
        const uint row = first_row + place.x;
        if (row < params.rows && col < params.cols) {
            y[col * params.rows + row] = tile[place.x][c];
        }
    }
}
