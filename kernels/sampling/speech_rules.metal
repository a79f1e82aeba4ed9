// speech_rules_f32: logits[t] = -inf for each token t that may not follow in the transcript of its row, in place
//
// Row i of the logits belongs to row outputs[i] of the row table. What was said so far lies in the history of its
// sequence, from the token on that its rule names; the rule also says whether there are times.
//
//   1. The first token and those after it each have a mask of the tokens that may be said.
//   2. Times come in pairs: after the two of a pair comes text, after a single one its partner or the end.
//   3. Times do not go back; a segment that has text is not empty.
//   4. The first token is one of the first times.
//   5. When all times together are more probable than the best text, a time comes.
//
// An idle row stays as it is; NaN counts as probability 0.
//
// Launch:  one threadgroup of up to 1024 threads a row.
// Memory:  the logits are read once, those of times twice. A thread only reads what no other thread may change.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"
#include "include/row_table.h"

using namespace metal;

// What was said, the last token first.
struct Said {
    device const uint *history;  // of the sequence
    uint stride;
    uint length;                 // of the sequence
    uint n;                      // tokens that were said

    uint back(uint at) const {
        return history[(length - 1 - at) % stride];
    }
};

// What may follow besides masks: tokens from `text` on that are no times, and times from `time` up to `times_end`.
struct Allowed {
    uint text;
    uint time;
    uint times_end;
};

inline Allowed allowed_after(Said said, bool has_times, constant SpeechRulesParams &params) {
    const uint end = params.vocab_size;
    const uint first_time = params.first_time;
    if (!has_times) {
        return Allowed{0, end, end};
    }
    if (said.n == 0) {
        return Allowed{first_time, first_time, min(end, first_time + params.n_first_times)};
    }
    const uint last = said.back(0);
    if (last >= first_time) {
        const bool is_single = said.n > 1 && said.back(1) < first_time;
        return is_single ? Allowed{params.end, last, end} : Allowed{0, end, end};
    }
    for (uint at = 1; at < said.n; ++at) {
        if (said.back(at) >= first_time) {
            return Allowed{0, said.back(at) + 1, end};
        }
    }
    return Allowed{0, first_time, end};
}

kernel void speech_rules_f32(
    device float *logits                [[buffer(0)]],
    device const uint *masks            [[buffer(1)]],
    device const uint *history          [[buffer(2)]],
    constant SpeechRulesParams &params  [[buffer(3)]],
    device const uint *outputs          [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const SamplingRule *rules    [[buffer(6)]],
    uint output                         [[threadgroup_position_in_grid]],
    uint n_threads                      [[threads_per_threadgroup]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];

    device const Row &row = rows[outputs[output]];
    if (!is_active(row)) {
        return;
    }
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    device const SamplingRule &rule = rules[row.sequence];
    const uint start = min(rule.transcript_start, row.length);
    const Said said = {
        history + ulong(row.sequence) * params.history_stride,
        params.history_stride,
        row.length,
        min(row.length - start, params.history_stride),
    };
    const Allowed may = allowed_after(said, rule.has_times != 0, params);
    const uint n = params.vocab_size;
    const uint first_time = min(params.first_time, n);
    device float *own = logits + ulong(output) * n;
    device const uint *mask = masks + (said.n == 0 ? (n + 31) / 32 : 0);

    float text = -INFINITY;
    float time = -INFINITY;
    for (uint i = thread_index; i < n; i += n_threads) {
        const bool in_range = i < first_time ? i >= may.text : i >= may.time && i < may.times_end;
        const float logit = own[i];
        if (!in_range || ((mask[i / 32] >> (i % 32)) & 1u) == 0) {
            own[i] = -INFINITY;
        } else if (i < first_time) {
            text = logit > text ? logit : text;
        } else {
            time = logit > time ? logit : time;
        }
    }
    const float best_text = threadgroup_max(text, shared, at);
    const float best_time = threadgroup_max(time, shared, at);
    if (!(best_time > -INFINITY)) {
        return;
    }
    // The same thread reads a time as before, and has forbidden it if it may not follow.
    float sum = 0.0f;
    const uint n_before = first_time <= thread_index ? 0 : (first_time - thread_index + n_threads - 1) / n_threads;
    for (uint i = thread_index + n_before * n_threads; i < n; i += n_threads) {
        sum += own[i] > -INFINITY ? (own[i] == best_time ? 1.0f : precise::exp(own[i] - best_time)) : 0.0f;
    }
    const float all_times = best_time + precise::log(threadgroup_sum(sum, shared, at));
    if (all_times > best_text) {
        for (uint i = thread_index; i < first_time; i += n_threads) {
            own[i] = -INFINITY;
        }
    }
}
