// flash_attention_decode_fast_f16: attention of one row a SIMD group, without threadgroup memory.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one SIMD group (32 threads) for each row (x) and head (y).
// Memory:  q is held in registers. Each key and value is read once, four elements at a time; four teams of 8 lanes
//          keep an online softmax each and join at the end. No barrier.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_team.h"

using namespace metal;

kernel void flash_attention_decode_fast_f16(
    device const float *Q               [[buffer(0)]],
    device const half *K                [[buffer(1)]],
    device const half *V                [[buffer(2)]],
    device float *O                     [[buffer(3)]],
    constant AttentionParams &params    [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const uint *table            [[buffer(6)]],
    uint2 place                         [[threadgroup_position_in_grid]],
    uint lane                           [[thread_index_in_simdgroup]]
) {
    device const Row &row = rows[params.first_row + place.x];
    const Keys keys = keys_of(K, V, params, table, uint2(row.sequence, place.y));
    const RowMask mask = row_mask(row);
    const TeamLane at = team_lane(lane, keys.slots.head_dim);
    const ulong offset = query_offset(params, params.first_row + place.x, place.y);

    TeamQuery query;
    query.load(Q + offset, query_factor(params), at);
    TeamStream stream;
    stream.clear();
    stream_keys(stream, query, keys, mask, at, uint2(0, 1));
    stream.join_teams();

    const float inverse = inverse_sum(stream.sum);
    if (at.team == 0) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (at.holds(c)) {
                *(device packed_float4 *)(O + offset + at.element(c)) = stream.chunks[c] * inverse;
            }
        }
    }
}
