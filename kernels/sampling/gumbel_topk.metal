// gumbel_topk_f32: draws a token from the k best of each row, which are sorted in descending order
//
// Row i of the candidates belongs to row outputs[i] of the row table, whose sequence has the rule. Of the
// candidates only the first top_k count (0: all); then
//
//   1. top-p: softmax over the values; keep the first ones until their sum reaches top_p
//   2. min-p: keep values of at least best + log(min_p)
//   3. draw:  the largest of value * inv_temperature - log(-log(u)), u from
//             Philox(seed; token, position)
//
// The Gumbel noise makes the largest sum a draw from the softmax of the kept values at that
// temperature, without summing their probabilities. A greedy rule takes the first candidate; an idle row
// gets token 0 and no history.
//
// Launch:  one threadgroup of 256 threads a row, one candidate a thread.
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
    device uint *tokens                [[buffer(2)]],
    device uint *history               [[buffer(3)]],
    constant GumbelTopKParams &params  [[buffer(4)]],
    device const uint *outputs         [[buffer(5)]],
    device const Row *rows             [[buffer(6)]],
    device const SamplingRule *rules   [[buffer(7)]],
    uint output                        [[threadgroup_position_in_grid]],
    uint thread_index                  [[thread_index_in_threadgroup]],
    uint simd_group                    [[simdgroup_index_in_threadgroup]],
    uint lane                          [[thread_index_in_simdgroup]],
    uint n_simd_groups                 [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];
    threadgroup uint shared_places[MAX_SIMD_GROUPS];

    device const Row &row = rows[outputs[output]];
    if (!is_active(row)) {
        if (thread_index == 0) {
            tokens[output] = 0;
        }
        return;
    }
    device const SamplingRule &rule = rules[row.sequence];
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const uint i = thread_index;
    const uint first = output * params.k;
    const uint n_counted = rule.top_k == 0 ? params.k : min(rule.top_k, params.k);
    const uint n_candidates = rule.is_greedy != 0 ? 1 : n_counted;
    const bool is_candidate = i < n_candidates;
    const float value = is_candidate ? values[first + i] : -INFINITY;
    const uint id = ids[first + (is_candidate ? i : 0)];
    const float best = values[first];

    const float weight = value > -INFINITY ? precise::exp(value - best) : 0.0f;
    const float total = threadgroup_sum(weight, shared, at);
    const float before = sum_before(weight, shared, at);
    const bool in_top_p = rule.top_p >= 1.0f || before < rule.top_p * total;
    const bool in_min_p = rule.min_p <= 0.0f || value >= best + precise::log(rule.min_p);
    const bool kept = i == 0 || (is_candidate && in_top_p && in_min_p);

    const uint4 bits = philox(uint4(id, row.position, 0, 0), uint2(rule.seed_lo, rule.seed_hi));
    const float noise = -precise::log(-precise::log(open_unit(bits.x)));
    Candidate mine = no_candidate();
    if (kept) {
        mine = better(mine, value * rule.inv_temperature + noise, i);
    }
    const Candidate drawn = threadgroup_best(mine, shared, shared_places, at);
    if (i == 0) {
        const uint place = drawn.place == NO_CANDIDATE ? 0 : drawn.place;
        store_token(ids[first + place], tokens + output, history, row, params.history_stride);
    }
}
