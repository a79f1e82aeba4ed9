// repetition_penalty_f32: for the last tokens of each row's history, a positive logit is divided by the
// penalty and a negative one multiplied; a token that occurs several times is penalised once
//
// Row i of the logits belongs to row outputs[i] of the row table. The rule of its sequence has the penalty,
// and says how many tokens count (0: all), but no more than the row's length and what the history keeps.
//
// Launch:  threadgroups of 256, up to 4096 threads (x) for each row (y), which stride over the tokens.
// Memory:  the thread of a token's last occurrence changes its logit, so that no two threads touch the
//          same one; to know that, a thread reads the history from its token on.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

// The tokens of one sequence: token t lies at t % stride.
struct History {
    device const uint *tokens;
    uint stride;

    bool occurs_between(uint id, uint first, uint end) const {
        uint place = first % stride;
        for (uint token = first; token < end; ++token) {
            if (tokens[place] == id) {
                return true;
            }
            place = place + 1 == stride ? 0 : place + 1;
        }
        return false;
    }
};

kernel void repetition_penalty_f32(
    device float *logits                      [[buffer(0)]],
    constant RepetitionPenaltyParams &params  [[buffer(1)]],
    device const uint *outputs                [[buffer(2)]],
    device const Row *rows                    [[buffer(3)]],
    device const SamplingRule *rules          [[buffer(4)]],
    device const uint *history                [[buffer(5)]],
    uint2 index                               [[thread_position_in_grid]],
    uint2 n_threads                           [[threads_per_grid]]
) {
    device const Row &row = rows[outputs[index.y]];
    if (!is_active(row)) {
        return;
    }
    device const SamplingRule &rule = rules[row.sequence];
    const float penalty = rule.penalty;
    if (penalty == 1.0f) {
        return;
    }
    const uint length = row.length;
    const uint stride = params.history_stride;
    const History seen = { history + ulong(row.sequence) * stride, stride };
    const uint window = rule.penalty_window == 0 ? length : rule.penalty_window;
    const uint n_tokens = min(min(window, length), stride);
    device float *row_logits = logits + ulong(index.y) * params.vocab_size;
    for (uint token = length - n_tokens + index.x; token < length; token += n_threads.x) {
        const uint id = seen.tokens[token % stride];
        if (id < params.vocab_size && !seen.occurs_between(id, token + 1, length)) {
            const float logit = row_logits[id];
            row_logits[id] = logit > 0.0f ? logit / penalty : logit * penalty;
        }
    }
}
