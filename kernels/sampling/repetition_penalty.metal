// repetition_penalty_f32: for each token of history[0 .. n_tokens], a positive logit is divided by
// the penalty and a negative one multiplied; a token that occurs several times is penalised once
//
// FC_PENALTY_WINDOW limits the list to its last tokens.
//
// Launch:  threadgroups of 256, one thread a token of the window, or a fixed number of threads that
//          stride over the whole list, which grows from step to step.
// Memory:  the thread of a token's last occurrence changes its logit, so that no two threads touch
//          the same one; to know that, a thread reads the list from its token on.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/sampling_constants.h"

using namespace metal;

inline bool occurs_later(device const uint *history, uint at, uint n_tokens) {
    for (uint later = at + 1; later < n_tokens; ++later) {
        if (history[later] == history[at]) {
            return true;
        }
    }
    return false;
}

kernel void repetition_penalty_f32(
    device float *logits                      [[buffer(0)]],
    device const uint *history                [[buffer(1)]],
    constant RepetitionPenaltyParams &params  [[buffer(2)]],
    uint index                                [[thread_position_in_grid]],
    uint n_threads                            [[threads_per_grid]]
) {
    const uint n_tokens = params.n_tokens;
    const bool limited = is_function_constant_defined(FC_PENALTY_WINDOW);
    const uint window = limited ? min(FC_PENALTY_WINDOW, n_tokens) : n_tokens;
    for (uint at = n_tokens - window + index; at < n_tokens; at += n_threads) {
        const uint id = history[at];
        if (id < params.vocab_size && !occurs_later(history, at, n_tokens)) {
            const float logit = logits[id];
            logits[id] = logit > 0.0f ? logit / params.penalty : logit * params.penalty;
        }
    }
}
