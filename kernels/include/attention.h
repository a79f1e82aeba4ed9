// What all attention kernels share: where queries, keys and values lie, scores and their softmax.
//
//     O[h] = Σ_k softmax(score(q_h · k))_k v_k,   score(x) = x * scale, soft-capped where asked
//
// Scores are kept in units of log2(e), so that the exponential is exp2. A query without any visible
// key gives zeros.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_constants.h"
#include "include/attention_mask.h"

using namespace metal;

// Smaller than any score, and finite: differences of two are not NaN.
constant constexpr float LOWEST_SCORE = -1e38f;

// The factor of the query before the dot product.
inline float query_factor(constant AttentionParams &params) {
    return SOFTCAP > 0.0f ? params.scale / SOFTCAP : params.scale * M_LOG2E_F;
}

// The score, in units of log2(e), of a dot product with a query that was multiplied by its factor.
inline float score(float product) {
    return SOFTCAP > 0.0f ? SOFTCAP * M_LOG2E_F * precise::tanh(product) : product;
}

// The keys and values of one head: a ring of rows, key p in row p % n_slots.
struct KeyRing {
    device const half *k;
    device const half *v;
    uint n_slots;
    uint head_dim;
};

inline uint head_dim_of(constant AttentionParams &params) {
    return HAS_HEAD_DIM ? FC_HEAD_DIM : params.head_dim;
}

inline KeyRing key_ring(
    device const half *K, device const half *V, constant AttentionParams &params, uint head
) {
    const uint head_dim = head_dim_of(params);
    const uint n_slots = params.kv_stride == 0 ? params.kv_seq_len : params.kv_stride / head_dim;
    const uint kv_head = head / (params.n_heads / params.n_kv_heads);
    const ulong offset = ulong(kv_head) * n_slots * head_dim;
    return { K + offset, V + offset, max(n_slots, 1u), head_dim };
}

// Where a query and its output begin: rows of heads, or heads of rows when q_stride is 0.
inline ulong query_offset(constant AttentionParams &params, uint query, uint head) {
    const uint head_dim = head_dim_of(params);
    return params.q_stride == 0
        ? (ulong(head) * params.seq_len + query) * head_dim
        : ulong(query) * params.q_stride + head * head_dim;
}

// One over the sum of the weights; 0 where nothing was visible.
inline float inverse_sum(float sum) {
    return sum > 0.0f ? 1.0f / sum : 0.0f;
}
