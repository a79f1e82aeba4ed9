// scale_queries_f32: q[i] *= t, or t * turned_factor in the elements of a head that turn
//
// t = 1 + temperature * ln(1 + position / period), where the division is that of whole numbers: the temperature of attention. The
// factor of elements that turn is the square of what long-rope multiplies both queries and keys by. Idle rows stay as they are.
//
// Launch:  x along the row, one thread for four elements; y a row each. Threadgroups of 256.
// Memory:  each element is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

kernel void scale_queries_f32(
    device float *q                     [[buffer(0)]],
    device const Row *rows              [[buffer(1)]],
    constant ScaleQueriesParams &params [[buffer(2)]],
    uint2 index                         [[thread_position_in_grid]]
) {
    const uint first = 4 * index.x;
    const uint width = params.n_heads * params.head_dim;
    if (index.y >= params.n_rows || first >= width || !is_active(rows[index.y])) {
        return;
    }
    const uint periods = rows[index.y].position / max(params.period, 1u);
    const float factor = 1.0f + params.temperature * precise::log(1.0f + float(periods));
    device float *row = q + ulong(index.y) * width;
    for (uint i = first; i < min(first + 4, width); ++i) {
        const bool turns = i % params.head_dim < params.turned_dim;
        row[i] *= turns ? factor * params.turned_factor : factor;
    }
}
