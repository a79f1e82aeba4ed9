// mean_rows_f32: to[i] = mean of the rows of the text that row outputs[i] is of, rows of dim elements
//
// A row says which number of its text it is (position) and how many there are (length).
//
// Launch:  x along the row, one thread for four elements; y a text each. Threadgroups of 256.
// Memory:  each row of a text is read once, in order. Rows of a multiple of 4 elements are read as float4.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

kernel void mean_rows_f32(
    device const float *from           [[buffer(0)]],
    device const uint *outputs         [[buffer(1)]],
    device float *to                   [[buffer(2)]],
    constant GatherRowsParams &params  [[buffer(3)]],
    device const Row *rows             [[buffer(4)]],
    uint2 index                        [[thread_position_in_grid]]
) {
    const uint dim = params.dim;
    const uint first = 4 * index.x;
    if (index.y >= params.n_rows || first >= dim) {
        return;
    }
    const uint output = outputs[index.y];
    const uint length = rows[output].length;
    device const float *text = from + ulong(output - rows[output].position) * dim;
    device float *target = to + ulong(index.y) * dim;
    if (dim % 4 == 0) {
        float4 sum = float4(0.0f);
        for (uint row = 0; row < length; row++) {
            sum += *(device const float4 *)(text + ulong(row) * dim + first);
        }
        *(device float4 *)(target + first) = sum / float(length);
    } else {
        for (uint i = first; i < min(first + 4, dim); ++i) {
            float sum = 0.0f;
            for (uint row = 0; row < length; row++) {
                sum += text[ulong(row) * dim + i];
            }
            target[i] = sum / float(length);
        }
    }
}
