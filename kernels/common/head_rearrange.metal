// head_rearrange_f32: y[i][o] = x[o][i], from (n_outer, n_inner, dim) to (n_inner, n_outer, dim)
//
// Tokens x heads to heads x tokens, or back: the elements of a head stay together.
//
// Launch:  x along the row of n_inner * dim elements, one thread for four; y an outer index each.
//          Threadgroups of 256.
// Memory:  each element is read and written once; as float4 where dim is a multiple of 4.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void head_rearrange_f32(
    device const float *x                 [[buffer(0)]],
    device float *y                       [[buffer(1)]],
    constant HeadRearrangeParams &params  [[buffer(2)]],
    uint2 index                           [[thread_position_in_grid]]
) {
    const uint dim = params.dim;
    const uint row_len = params.n_inner * dim;
    const uint outer = index.y;
    const uint first = 4 * index.x;
    if (outer >= params.n_outer || first >= row_len) {
        return;
    }
    device const float *row = x + outer * row_len;
    if (dim % 4 == 0) {
        const uint to = ((first / dim) * params.n_outer + outer) * dim + first % dim;
        *(device float4 *)(y + to) = *(device const float4 *)(row + first);
    } else {
        for (uint i = first; i < min(first + 4, row_len); ++i) {
            y[((i / dim) * params.n_outer + outer) * dim + i % dim] = row[i];
        }
    }
}
