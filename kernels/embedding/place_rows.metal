// place_rows_f32: x[r] = features[r], or x[r] += features[r], for rows r of an image, rows of dim elements
//
// All other rows stay as they are, and their features are not read.
//
// Launch:  x along the row, one thread for four elements; y a row each. Threadgroups of 256.
// Memory:  x and the features of an image's rows are read and written once; rows of a multiple of 4 elements as float4.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

kernel void place_rows_f32(
    device float *x                   [[buffer(0)]],
    device const float *features      [[buffer(1)]],
    device const Row *rows            [[buffer(2)]],
    constant PlaceRowsParams &params  [[buffer(3)]],
    uint2 index                       [[thread_position_in_grid]]
) {
    const uint dim = params.dim;
    const uint first = 4 * index.x;
    if (index.y >= params.n_rows || first >= dim || !is_of_image(rows[index.y])) {
        return;
    }
    device float *x_row = x + ulong(index.y) * dim;
    device const float *f_row = features + ulong(index.y) * dim;
    if (dim % 4 == 0) {
        device float4 *x_four = (device float4 *)(x_row + first);
        const float4 f_four = *(device const float4 *)(f_row + first);
        *x_four = params.add != 0 ? *x_four + f_four : f_four;
    } else {
        for (uint i = first; i < min(first + 4, dim); ++i) {
            x_row[i] = params.add != 0 ? x_row[i] + f_row[i] : f_row[i];
        }
    }
}
