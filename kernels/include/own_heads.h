// The heads that a row brings along, before its attention: queries and the key are normalised and turned, the key and the value
// are rounded to what a page holds, and stored. A key with a centre is rounded less the centre.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/team_head.h"
#include "include/tensor_row.h"

using namespace metal;

// The row's own heads: a SIMD group has a query in its first team, the key in the second and the value in the others.
struct OwnHeads {
    device const float *q;
    device const float *k;
    device const float *v;
    device const float *centre;  // of the key, read only with FC_KEY_CENTRE
    device half *K;
    device half *V;
    SlotAt slot;
    bool stores;
};

// Where the row's own heads are left for all SIMD groups.
struct OwnPlaces {
    threadgroup uint4 *queries;  // see TensorQueries
    threadgroup float *scores;
    threadgroup float4 *value;
};

// Turns the query of head `index` and the key, and leaves the query, its score with the key, and the value. A head that is not
// there gets zeros, or if there is no SIMD group for it, anything: it is a row of its own in all products. Rotations
// are there after a barrier. All threads must call it.
template <typename Style>
inline void prepare_heads(
    OwnHeads own, device const float *q_norm, device const float *k_norm, constant DecodeAttentionParams &params,
    threadgroup const float2 *rotations, OwnPlaces to, uint index, bool is_there, TeamLane at
) {
    const bool is_query = at.team == 0;
    const bool is_key = at.team == 1;
    TeamHead head;
    head.load(is_query ? own.q : is_key ? own.k : own.v, at);
    TeamHead centre;
    if (HAS_KEY_CENTRE) {
        centre.load(own.centre, at);
    }
    TeamHead changed = head;
    if (HAS_HEAD_NORM) {
        changed.normalise(is_query ? q_norm : k_norm, params.eps, at);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    turn<Style>(changed, rotations, at);
    if (HAS_KEY_CENTRE) {
        changed.subtract(centre, is_key);
    }
    head.replace(changed, is_query || is_key);
    changed = head;
    changed.round_to_page(is_key ? own.K : own.V, own.slot, own.stores && (is_key || at.team == 2), at);
    head.replace(changed, !is_query);

    float product = 0.0f;
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        if (c < at.n_chunks) {
            const float4 x = head.chunks[c];
            product += dot(x, simd_shuffle_xor(x, TEAM_LANES));
            if (is_query) {
                const uint4 both = uint4(pack(x.xy), pack_rest(x.xy), pack(x.zw), pack_rest(x.zw));
                to.queries[(2 * c + at.lane % 2) * 32 + index * 4 + at.lane / 2] = is_there ? both : uint4(0);
            }
            if (at.team == 2 && index == 0) {
                to.value[at.element(c) / 4] = x;
            }
        }
    }
    product = team_sum(product);
    if (is_query && at.lane == 0) {
        to.scores[index] = score(product * query_factor(params));
    }
}
