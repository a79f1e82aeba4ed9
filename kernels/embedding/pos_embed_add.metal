// pos_embed_add_f32: x[t][i] += table[pos + t][i], in place over (seq_len, dim)
//
// Learned positions (Whisper, BERT). A position beyond the table takes its last row.
//
// Launch:  x along the row, one thread for four elements; y a token each. Threadgroups of 256.
// Memory:  x is read and written once, the table once; rows of a multiple of 4 elements as float4.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void pos_embed_add_f32(
    device float *x                  [[buffer(0)]],
    device const float *table        [[buffer(1)]],
    constant PosEmbedParams &params  [[buffer(2)]],
    uint2 index                      [[thread_position_in_grid]]
) {
    const uint dim = params.dim;
    const uint token = index.y;
    const uint first = 4 * index.x;
    if (token >= params.seq_len || first >= dim) {
        return;
    }
    const uint last = params.n_positions - 1;
    const uint position = params.pos < last ? min(params.pos + token, last) : last;
    device float *x_row = x + token * dim;
    device const float *e_row = table + position * dim;
    if (dim % 4 == 0) {
        *(device float4 *)(x_row + first) += *(device const float4 *)(e_row + first);
    } else {
        for (uint i = first; i < min(first + 4, dim); ++i) {
            x_row[i] += e_row[i];
        }
    }
}
