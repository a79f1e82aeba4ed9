// scale_rows_f32: x[i] *= factors[sequence of row i], rows of cols elements
//
// Row i of the matrix is that of entry i of the row table or, where results are gathered, of entry
// outputs[i]. A factor of 0 gives zeros, whatever was there: not even an infinity of one sequence reaches
// the others.
//
// Launch:  x along the row, one thread for four elements; y a row each. Threadgroups of 256.
// Memory:  each element is read and written once, one by one: rows are short.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

kernel void scale_rows_f32(
    device float *x                    [[buffer(0)]],
    device const Row *rows             [[buffer(1)]],
    device const uint *outputs         [[buffer(2)]],
    device const float *factors        [[buffer(3)]],
    constant ScaleRowsParams &params   [[buffer(4)]],
    uint2 index                        [[thread_position_in_grid]]
) {
    const uint first = 4 * index.x;
    if (index.y >= params.n_rows || first >= params.cols) {
        return;
    }
    const uint at = params.by_output != 0 ? outputs[index.y] : index.y;
    const uint sequence = rows[at].sequence;
    const bool is_known = is_active(rows[at]) && sequence < params.n_sequences;
    const float factor = is_known ? factors[sequence] : 0.0f;
    device float *row = x + ulong(index.y) * params.cols;
    for (uint i = first; i < min(first + 4, params.cols); ++i) {
        row[i] = factor == 0.0f ? 0.0f : row[i] * factor;
    }
}
