// gumbel_topk_f32: draws a token from the k best, which are sorted in descending order
//
//   1. top-p: softmax over the k values; keep the first ones until their sum reaches top_p
//   2. min-p: keep values of at least best + log(min_p)
//   3. draw:  the largest of value * inv_temperature - log(-log(u)), u from Philox(seed; token, pos)
//
// The Gumbel noise makes the largest sum a draw from the softmax of the kept values at that
// temperature, without summing their probabilities.
//
// Launch:  one threadgroup of 256 threads, one candidate a thread.
// Memory:  each candidate is read once; 256 bytes of threadgroup memory.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/choice.h"
#include "include/philox.h"
#include "include/reduce.h"

using namespace metal;

// The sum over all threads before this one.
inline float sum_before(float value, threadgroup float *shared, SimdPlace at) {
    const float before_in_group = simd_prefix_exclusive_sum(value);
    if (at.lane == SIMD_WIDTH - 1) {
        shared[at.group] = before_in_group + value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float before = before_in_group;
    for (uint g = 0; g < at.group; ++g) {
        before += shared[g];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return before;
}

kernel void gumbel_topk_f32(
    device const float *values         [[buffer(0)]],
    device const uint *ids             [[buffer(1)]],
    device uint *token                 [[buffer(2)]],
    device uint *history               [[buffer(3)]],
    constant GumbelTopKParams &params  [[buffer(4)]],
    uint thread_index                  [[thread_index_in_threadgroup]],
    uint simd_group                    [[simdgroup_index_in_threadgroup]],
    uint lane                          [[thread_index_in_simdgroup]],
    uint n_simd_groups                 [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];
    threadgroup uint shared_places[MAX_SIMD_GROUPS];

    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const uint i = thread_index;
    const bool is_candidate = i < params.k;
    const float value = is_candidate ? values[i] : -INFINITY;
    const uint id = ids[is_candidate ? i : 0];
    const float best = values[0];

    const float weight = value > -INFINITY ? precise::exp(value - best) : 0.0f;
    const float total = threadgroup_sum(weight, shared, at);
    const float before = sum_before(weight, shared, at);
    const bool in_top_p = params.top_p >= 1.0f || before < params.top_p * total;
    const bool in_min_p = params.min_p <= 0.0f || value >= best + precise::log(params.min_p);
    const bool kept = i == 0 || (is_candidate && in_top_p && in_min_p);

    const uint4 bits = philox(uint4(id, params.pos, 0, 0), uint2(params.seed_lo, params.seed_hi));
    const float noise = -precise::log(-precise::log(open_unit(bits.x)));
    Candidate mine = no_candidate();
    if (kept) {
        mine = better(mine, value * params.inv_temperature + noise, i);
    }
    const Candidate drawn = threadgroup_best(mine, shared, shared_places, at);
    if (i == 0) {
        const uint place = drawn.place == NO_CANDIDATE ? 0 : drawn.place;
        store_token(ids[place], token, history, params.pos, params.history_len);
    }
}
