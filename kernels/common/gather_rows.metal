// gather_rows_f32: to[i] = from[outputs[i]], rows of dim elements
//
// Launch:  x along the row, one thread for four elements; y a row each. Threadgroups of 256.
// Memory:  each element is read and written once. Rows of a multiple of 4 elements are read as float4.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void gather_rows_f32(
    device const float *from           [[buffer(0)]],
    device const uint *outputs         [[buffer(1)]],
    device float *to                   [[buffer(2)]],
    constant GatherRowsParams &params  [[buffer(3)]],
    uint2 index                        [[thread_position_in_grid]]
) {
    const uint dim = params.dim;
    const uint first = 4 * index.x;
    if (index.y >= params.n_rows) {
        return;
    }
    device const float *source = from + ulong(outputs[index.y]) * dim;
    device float *target = to + ulong(index.y) * dim;
    if (dim % 4 == 0 && first < dim) {
        *(device float4 *)(target + first) = *(device const float4 *)(source + first);
    } else {
        for (uint i = first; i < min(first + 4, dim); ++i) {
            target[i] = source[i];
        }
    }
}
