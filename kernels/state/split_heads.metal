// split_heads_f32: first[r][h] = x[r][h][0], second[r][h] = x[r][h][1]
//
// Launch:  x along the head, one thread for four elements; y a head of a row each. Threadgroups of 256.
// Memory:  each element is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void split_heads_f32(
    device const float *x               [[buffer(0)]],
    device float *first                 [[buffer(1)]],
    device float *second                [[buffer(2)]],
    constant SplitHeadsParams &params   [[buffer(3)]],
    uint2 index                         [[thread_position_in_grid]]
) {
    const uint dim = params.head_dim;
    if (index.y >= params.n_rows * params.n_heads) {
        return;
    }
    const ulong from = 2 * ulong(index.y) * dim;
    const ulong to = ulong(index.y) * dim;
    for (uint i = 4 * index.x; i < min(4 * index.x + 4, dim); ++i) {
        first[to + i] = x[from + i];
        second[to + i] = x[from + dim + i];
    }
}
