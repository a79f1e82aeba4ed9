// token_scores_f32: records the log probability of each row's token, and the best tokens with theirs
//
//     log p(token) = logit - best - log(sum of exp(logits - best))
//
// Row i of the logits belongs to row outputs[i] of the row table. The rule of its sequence says how many of the best
// are recorded; a rule that asks for nothing and an idle row leave the record as it is. Among equals the first token
// comes first; NaN counts as probability 0.
//
// Launch:  one threadgroup of up to 1024 threads a row.
// Memory:  the logits are read twice, and once more for each of the best.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/choice.h"
#include "include/reduce.h"

using namespace metal;

kernel void token_scores_f32(
    device const float *logits          [[buffer(0)]],
    device const uint *tokens           [[buffer(1)]],
    device float *scores                [[buffer(2)]],
    device uint *best_tokens            [[buffer(3)]],
    constant TokenScoresParams &params  [[buffer(4)]],
    device const uint *outputs          [[buffer(5)]],
    device const Row *rows              [[buffer(6)]],
    device const SamplingRule *rules    [[buffer(7)]],
    uint output                         [[threadgroup_position_in_grid]],
    uint n_threads                      [[threads_per_threadgroup]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];
    threadgroup uint shared_places[MAX_SIMD_GROUPS];

    device const Row &row = rows[outputs[output]];
    if (!is_active(row) || rules[row.sequence].n_scores == 0) {
        return;
    }
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const uint n = params.vocab_size;
    device const float *own = logits + ulong(output) * n;
    const ulong record = ulong(row.step % params.max_steps) * params.record_stride + output;
    device float *own_scores = scores + record * (params.max_best + 1);
    device uint *own_best = best_tokens + record * params.max_best;

    Candidate mine = no_candidate();
    for (uint i = thread_index; i < n; i += n_threads) {
        mine = better(mine, own[i], i);
    }
    Candidate last = threadgroup_best(mine, shared, shared_places, at);
    const float best = last.value;
    float sum = 0.0f;
    for (uint i = thread_index; i < n; i += n_threads) {
        sum += own[i] > -INFINITY ? (own[i] == best ? 1.0f : precise::exp(own[i] - best)) : 0.0f;
    }
    const float log_sum = precise::log(threadgroup_sum(sum, shared, at));
    if (thread_index == 0) {
        const float logit = own[min(tokens[output], n - 1)];
        own_scores[0] = logit == best ? -log_sum : logit - best - log_sum;
    }
    const uint n_best = min(min(rules[row.sequence].n_scores - 1, params.max_best), n);
    for (uint rank = 0; rank < n_best; ++rank) {
        if (thread_index == 0) {
            own_scores[1 + rank] = last.value == best ? -log_sum : last.value - best - log_sum;
            own_best[rank] = last.place;
        }
        // The best of all that come after that one.
        mine = no_candidate();
        for (uint i = thread_index; i < n; i += n_threads) {
            const bool is_after = own[i] < last.value || (own[i] == last.value && i > last.place);
            if (is_after) {
                mine = better(mine, own[i], i);
            }
        }
        last = threadgroup_best(mine, shared, shared_places, at);
    }
}
