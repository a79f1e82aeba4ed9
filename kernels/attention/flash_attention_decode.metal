// flash_attention_decode_f16: attention of one row a threadgroup; short contexts and short prefills.
// flash_attention_sinks_f16: the same with a learnt score of each head that has no value, and takes its share of the weights.
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

// Where a thread stands in its threadgroup.
struct DecodePlace {
    uint thread_index;
    uint simd_group;
    uint lane;
    uint n_simd_groups;
};

// The buffers of a launch.
struct DecodeMemory {
    device const float *Q;
    device const half *K;
    device const half *V;
    device float *O;
    device const Row *rows;
    device const uint *table;
};

// The attention of a row and head. `sink` is a score, LOWEST_SCORE for none.
inline void attend_row(
    DecodeMemory memory, constant AttentionParams &params, uint2 place, DecodePlace own, float sink,
    threadgroup float *scores, threadgroup float *weights
) {
    device const Row &row = memory.rows[params.first_row + place.x];
    const Keys keys = keys_of(memory.K, memory.V, params, memory.table, uint2(row.sequence, place.y));
    const RowMask mask = row_mask(row);
    const TeamLane at = team_lane(own.lane, keys.slots.head_dim);
    const ulong offset = query_offset(params, params.first_row + place.x, place.y);
    const uint element = min(own.thread_index, keys.slots.head_dim - 1);

    TeamQuery query;
    query.load(memory.Q + offset, query_factor(params), at);
    float peak = sink;
    float sum = sink == LOWEST_SCORE ? 0.0f : 1.0f;
    float output = 0.0f;
    for (uint first = tile_of(mask.begin); first < mask.end; first += KEY_TILE) {
        const SlotAt tile = keys.slots.at(first);
        const uint n_keys = min(KEY_TILE, mask.end - first);

        for (uint i = N_TEAMS * own.simd_group; i < KEY_TILE; i += N_TEAMS * own.n_simd_groups) {
            const uint in_tile = i + at.team;
            const SlotAt key = tile.after(min(in_tile, n_keys - 1), keys.slots.head_dim);
            float product = query.product(keys.k, key, at);
            if (keys.slots.head_dim > MAX_HEAD_DIM) {
                product += product_beyond(memory.Q + offset, query_factor(params), keys.k, key, at);
            }
            if (at.lane == 0) {
                scores[in_tile] = mask.visible(first + in_tile) ? score(product) : LOWEST_SCORE;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        const float key_score = scores[own.lane];
        const float new_peak = max(peak, simd_max(key_score));
        const float weight = key_score == LOWEST_SCORE ? 0.0f : fast::exp2(key_score - new_peak);
        const float correction = fast::exp2(peak - new_peak);
        sum = sum * correction + simd_sum(weight);
        peak = new_peak;
        if (own.simd_group == 0) {
            weights[own.lane] = weight;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        output *= correction;
        for (uint i = max(first, mask.begin) - first; i < n_keys; i++) {
            output += weights[i] * load_one(keys.v, tile.after(i, keys.slots.head_dim), element);
        }
    }
    if (own.thread_index < keys.slots.head_dim) {
        memory.O[offset + own.thread_index] = output * inverse_sum(sum);
    }
}

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
    const DecodeMemory memory = { Q, K, V, O, rows, table };
    const DecodePlace own = { thread_index, simd_group, lane, n_simd_groups };
    attend_row(memory, params, place, own, LOWEST_SCORE, scores, weights);
}

kernel void flash_attention_sinks_f16(
    device const float *Q               [[buffer(0)]],
    device const half *K                [[buffer(1)]],
    device const half *V                [[buffer(2)]],
    device float *O                     [[buffer(3)]],
    constant AttentionParams &params    [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const uint *table            [[buffer(6)]],
    device const float *sinks           [[buffer(7)]],  // (n_heads)
    uint2 place                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    threadgroup float scores[KEY_TILE];
    threadgroup float weights[KEY_TILE];
    const DecodeMemory memory = { Q, K, V, O, rows, table };
    const DecodePlace own = { thread_index, simd_group, lane, n_simd_groups };
    attend_row(memory, params, place, own, sinks[place.y] * M_LOG2E_F, scores, weights);
}
