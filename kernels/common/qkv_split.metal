// qkv_split_f32: each row [q | k | v] of the fused projection goes to three matrices
//
// Launch:  x along the row of q_dim + 2 * kv_dim elements, one thread for four; y a token each.
//          Threadgroups of 256.
// Memory:  each element is read and written once; as float4 where both widths are multiples of 4.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

// Where one matrix's part of a row begins and goes.
struct SplitTarget {
    device float *row;
    uint begin;
};

inline SplitTarget target_of(
    uint column, device float *q, device float *k, device float *v, uint q_dim, uint kv_dim
) {
    if (column < q_dim) {
        return SplitTarget{q, 0};
    }
    return column < q_dim + kv_dim ? SplitTarget{k, q_dim} : SplitTarget{v, q_dim + kv_dim};
}

kernel void qkv_split_f32(
    device const float *qkv          [[buffer(0)]],
    device float *q                  [[buffer(1)]],
    device float *k                  [[buffer(2)]],
    device float *v                  [[buffer(3)]],
    constant QKVSplitParams &params  [[buffer(4)]],
    uint2 index                      [[thread_position_in_grid]]
) {
    const uint q_dim = params.q_dim;
    const uint kv_dim = params.kv_dim;
    const uint row_len = q_dim + 2 * kv_dim;
    const uint token = index.y;
    const uint first = 4 * index.x;
    if (token >= params.seq_len || first >= row_len) {
        return;
    }
    device const float *row = qkv + token * row_len;
    device float *q_row = q + token * q_dim;
    device float *k_row = k + token * kv_dim;
    device float *v_row = v + token * kv_dim;
    if (q_dim % 4 == 0 && kv_dim % 4 == 0) {
        const SplitTarget to = target_of(first, q_row, k_row, v_row, q_dim, kv_dim);
        *(device float4 *)(to.row + first - to.begin) = *(device const float4 *)(row + first);
    } else {
        for (uint i = first; i < min(first + 4, row_len); ++i) {
            const SplitTarget to = target_of(i, q_row, k_row, v_row, q_dim, kv_dim);
            to.row[i - to.begin] = row[i];
        }
    }
}
