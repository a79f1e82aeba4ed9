// flash_attention_decode_f16: attention of one row a threadgroup; short contexts and short prefills.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one threadgroup for each row (x) and head (y), a thread for each element of the head, in
//          whole SIMD groups.
// Memory:  tiles of 32 keys. Teams of 8 lanes score the keys of a tile, every SIMD group then knows the
//          whole tile's softmax, and each thread sums its own element of the values. Each key and value
//          is read once; two barriers a tile; 256 bytes of threadgroup memory.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_team.h"
#include "include/reduce.h"

using namespace metal;

static_assert(KEY_TILE == SIMD_WIDTH, "a lane for each key of a tile");

kernel void flash_attention_decode_f16(
    device const float *Q               [[buffer(0)]],
    device const half *K                [[buffer(1)]],
    device const half *V                [[buffer(2)]],
    device float *O                     [[buffer(3)]],
    constant AttentionParams &params    [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const uint *table            [[buffer(6)]],
    uint2 place                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    threadgroup float scores[KEY_TILE];
    threadgroup float weights[KEY_TILE];

    device const Row &row = rows[params.first_row + place.x];
    const Keys keys = keys_of(K, V, params, table, uint2(row.sequence, place.y));
    const RowMask mask = row_mask(row);
    const TeamLane at = team_lane(lane, keys.slots.head_dim);
    const ulong offset = query_offset(params, params.first_row + place.x, place.y);
    const uint element = min(thread_index, keys.slots.head_dim - 1);

    TeamQuery query;
    query.load(Q + offset, query_factor(params), at);
    float peak = LOWEST_SCORE;
    float sum = 0.0f;
    float output = 0.0f;
    for (uint first = tile_of(mask.begin); first < mask.end; first += KEY_TILE) {
        const SlotAt tile = keys.slots.at(first);
        const uint n_keys = min(KEY_TILE, mask.end - first);

        for (uint i = N_TEAMS * simd_group; i < KEY_TILE; i += N_TEAMS * n_simd_groups) {
            const uint in_tile = i + at.team;
            const SlotAt key = tile.after(min(in_tile, n_keys - 1), keys.slots.head_dim);
            const float product = query.product(keys.k, key, at);
            if (at.lane == 0) {
                scores[in_tile] = mask.visible(first + in_tile) ? score(product) : LOWEST_SCORE;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        const float key_score = scores[lane];
        const float new_peak = max(peak, simd_max(key_score));
        const float weight = key_score == LOWEST_SCORE ? 0.0f : fast::exp2(key_score - new_peak);
        const float correction = fast::exp2(peak - new_peak);
        sum = sum * correction + simd_sum(weight);
        peak = new_peak;
        if (simd_group == 0) {
            weights[lane] = weight;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        output *= correction;
        for (uint i = max(first, mask.begin) - first; i < n_keys; i++) {
            output += weights[i] * load_one(keys.v, tile.after(i, keys.slots.head_dim), element);
        }
    }
    if (thread_index < keys.slots.head_dim) {
        O[offset + thread_index] = output * inverse_sum(sum);
    }
}
