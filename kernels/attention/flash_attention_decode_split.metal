// flash_attention_decode_split_f16: attention of one row over a part of its keys; flash_attention_join_f32 joins the parts.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h. Of every n_parts tiles of 32
// keys part p takes one:
//
//     parts[row][head][p] = Σ_k softmax(score)_k v_k over the keys of part p,  weights[row][head][p] = log2 Σ_k 2^score_k
//
// and zeros and -infinity where the part has no key.
//
// Launch:  a SIMD group for each row, head and part. A threadgroup has heads that share keys, all of them where the
//          pipeline allows as many threads, for one or several parts: grid (rows, heads / heads of a threadgroup,
//          ceil(parts / parts of a threadgroup)).
// Memory:  keys and values come from memory once, four elements at a time, and for the further heads of a threadgroup from
//          cache. No barrier, no threadgroup memory.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_team.h"

using namespace metal;

kernel void flash_attention_decode_split_f16(
    device const float *Q               [[buffer(0)]],
    device const half *K                [[buffer(1)]],
    device const half *V                [[buffer(2)]],
    device float *parts                 [[buffer(3)]],  // (n_rows, n_heads, n_parts, head_dim)
    constant AttentionParams &params    [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const uint *table            [[buffer(6)]],
    device float *weights               [[buffer(7)]],  // (n_rows, n_heads, n_parts)
    uint3 place                         [[threadgroup_position_in_grid]],
    uint3 grid                          [[threadgroups_per_grid]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    const uint n_together = params.n_heads / grid.y;
    const uint head = place.y * n_together + simd_group % n_together;
    const uint part = place.z * (n_simd_groups / n_together) + simd_group / n_together;
    if (part >= params.n_parts) {
        return;
    }
    device const Row &row = rows[params.first_row + place.x];
    const Keys keys = keys_of(K, V, params, table, uint2(row.sequence, head));
    const TeamLane at = team_lane(lane, keys.slots.head_dim);

    TeamQuery query;
    query.load(Q + query_offset(params, params.first_row + place.x, head), query_factor(params), at);
    TeamStream stream;
    stream.clear();
    stream_keys(stream, query, keys, row_mask(row), at, uint2(part, params.n_parts));
    stream.join_teams();

    const ulong index = (ulong(place.x) * params.n_heads + head) * params.n_parts + part;
    const float inverse = inverse_sum(stream.sum);
    if (at.team == 0) {
        device float *to = parts + index * at.head_dim;
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (at.holds(c)) {
                *(device float4 *)(to + at.element(c)) = stream.chunks[c] * inverse;
            }
        }
    }
    if (lane == 0) {
        weights[index] = stream.sum > 0.0f ? stream.peak + log2(stream.sum) : -INFINITY;
    }
}
