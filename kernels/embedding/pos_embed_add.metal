// pos_embed_add_f32: x[r][i] += table[p][i], in place over (n_rows, dim)
//
// Learned positions (Whisper, BERT): p is the row's position; one beyond the table takes its last row. Or, with by_kind,
// p is 1 for rows of the second text of a pair and 0 for all others.
//
// Launch:  x along the row, one thread for four elements; y a row each. Threadgroups of 256.
// Memory:  x is read and written once, the table once; rows of a multiple of 4 elements as float4.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

kernel void pos_embed_add_f32(
    device float *x                  [[buffer(0)]],
    device const float *table        [[buffer(1)]],
    constant PosEmbedParams &params  [[buffer(2)]],
    device const Row *rows           [[buffer(3)]],
    uint2 index                      [[thread_position_in_grid]]
) {
    const uint dim = params.dim;
    const uint first = 4 * index.x;
    if (index.y >= params.n_rows || first >= dim) {
        return;
    }
    device const Row &row = rows[index.y];
    const uint wanted = params.by_kind == 0 ? row.position : (row.flags & ROW_SECOND) / ROW_SECOND;
    const uint position = min(wanted, params.n_positions - 1);
    device float *x_row = x + ulong(index.y) * dim;
    device const float *e_row = table + ulong(position) * dim;
    if (dim % 4 == 0) {
        *(device float4 *)(x_row + first) += *(device const float4 *)(e_row + first);
    } else {
        for (uint i = first; i < min(first + 4, dim); ++i) {
            x_row[i] += e_row[i];
        }
    }
}
