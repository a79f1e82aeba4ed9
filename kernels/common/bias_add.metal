// bias_add_f32: x[r][c] += bias[c], in place over (rows, cols)
//
// Launch:  x along the row, one thread for four columns; y a row each. Threadgroups of 256.
// Memory:  x is read and written once, bias once a row (from cache). Rows of a multiple of 4
//          elements are read as float4.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void bias_add_f32(
    device float *x                [[buffer(0)]],
    device const float *bias       [[buffer(1)]],
    constant MatrixParams &params  [[buffer(2)]],
    uint2 index                    [[thread_position_in_grid]]
) {
    const uint cols = params.cols;
    const uint first = 4 * index.x;
    if (index.y >= params.rows) {
        return;
    }
    device float *row = x + index.y * cols;
    if (cols % 4 == 0 && first < cols) {
        *(device float4 *)(row + first) += *(device const float4 *)(bias + first);
    } else {
        for (uint c = first; c < min(first + 4, cols); ++c) {
            row[c] += bias[c];
        }
    }
}
