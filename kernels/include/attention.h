// What all attention kernels share: where queries, keys and values lie, scores and their softmax.
//
//     O[h] = Σ_k softmax(score(q_h · k))_k v_k,   score(x) = x * scale, soft-capped where asked
//
// Scores are kept in units of log2(e), so that the exponential is exp2. A row without any visible key
// gives zeros. Keys and values are read in tiles of 32 slots, each of which lies in one page.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_constants.h"
#include "include/attention_mask.h"
#include "include/pages.h"

using namespace metal;

// Smaller than any score, and finite: differences of two are not NaN.
constant constexpr float LOWEST_SCORE = -1e38f;

// The factor of the query before the dot product.
template <typename Params>
inline float query_factor(constant Params &params) {
    return SOFTCAP > 0.0f ? params.scale / SOFTCAP : params.scale * M_LOG2E_F;
}

// The score, in units of log2(e), of a dot product with a query that was multiplied by its factor.
inline float score(float product) {
    return SOFTCAP > 0.0f ? SOFTCAP * M_LOG2E_F * precise::tanh(product) : product;
}

// Slots of a tile. Tiles begin at multiples of it.
constant constexpr uint KEY_TILE = 32;

inline uint head_dim_of(constant AttentionParams &params) {
    return HAS_HEAD_DIM ? FC_HEAD_DIM : params.head_dim;
}

// The keys and values of one sequence and head.
struct Keys {
    device const half *k;
    device const half *v;
    Slots slots;
};

inline Keys keys_of(
    device const half *K, device const half *V, constant AttentionParams &params,
    device const uint *table, uint2 sequence_and_head
) {
    const uint kv_head = sequence_and_head.y / (params.n_heads / params.n_kv_heads);
    Slots slots = slots_of(table, params, sequence_and_head.x, kv_head);
    slots.head_dim = head_dim_of(params);
    return { K, V, slots };
}

// The first slot of the tile of a slot.
inline uint tile_of(uint slot) {
    return slot / KEY_TILE * KEY_TILE;
}

// Where a head of a row begins in Q and in the output.
inline ulong query_offset(constant AttentionParams &params, uint row, uint head) {
    const uint stride = params.q_stride == 0 ? params.n_heads * params.head_dim : params.q_stride;
    return ulong(row) * stride + head * head_dim_of(params);
}

// One over the sum of the weights; 0 where nothing was visible.
inline float inverse_sum(float sum) {
    return sum > 0.0f ? 1.0f / sum : 0.0f;
}
