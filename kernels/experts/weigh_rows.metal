// weigh_rows_f32: y[r][i] = sum over j of w[r][j] * x[r][j][i], or y[r][i] += that; rows of cols elements
//
// The results of the experts that a row uses, weighed and added up. Where `weighed_by` says so, w is the sigmoid of what is bound,
// the gate of a shared expert, or one number for all, and nothing is bound.
//
// Launch:  x along the row, one thread for four elements; y a row each. Threadgroups of 256.
// Memory:  each element of x and y is read or written once; the weights come from cache.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void weigh_rows_f32(
    device const float *x              [[buffer(0)]],  // (n_rows, n_used, cols)
    device const float *weights        [[buffer(1)]],  // (n_rows, n_used)
    device float *y                    [[buffer(2)]],  // (n_rows, cols)
    constant WeighParams &params       [[buffer(3)]],
    uint2 index                        [[thread_position_in_grid]]
) {
    const uint first = 4 * index.x;
    if (index.y >= params.n_rows || first >= params.cols) {
        return;
    }
    device float *own = y + ulong(index.y) * params.cols;
    float sums[4] = { 0.0f };
    for (uint j = 0; j < params.n_used; j++) {
        const ulong at = ulong(index.y) * params.n_used + j;
        float weight = params.weight;
        if (params.weighed_by < 2) {
            const float found = weights[at];
            weight = params.weighed_by == 1 ? 1.0f / (1.0f + precise::exp(-found)) : found;
        }
        device const float *row = x + at * params.cols;
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            if (first + i < params.cols) {
                sums[i] += weight * row[first + i];
            }
        }
    }
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        if (first + i < params.cols) {
            own[first + i] = params.add != 0 ? own[first + i] + sums[i] : sums[i];
        }
    }
}
