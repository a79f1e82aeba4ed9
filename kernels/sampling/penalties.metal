// penalties_f32: adds each row's biases to its logits and penalises what came before, in place
//
// Row i of the logits belongs to row outputs[i] of the row table, whose sequence has the rule. In this order:
//
//   bias        logit[token] += value, for each pair of the sequence's list
//   repetition  for each token among the last ones, once: a positive logit is divided, a negative one multiplied
//   frequency   and then lowered by frequency times its number of occurrences,
//   presence    and by presence
//   DRY         a token that would go on with a repetition of n >= dry_allowed tokens is lowered by
//               dry_multiplier * dry_base^(n - dry_allowed)
//
// Only the tokens from penalty_start on count, of those the last penalty_window (0: all), for DRY the last dry_window, at most
// 8192; and no more than the history keeps. A repetition ends at a breaker, a token whose bit is set; a breaker is not
// penalised itself. An id beyond the vocabulary is passed over.
//
// Launch:  one threadgroup of 256 threads a row. Rows that ask for nothing return at once.
// Memory:  the thread of a token's last occurrence changes its logit, so that no two threads touch the same one; to
//          know that, a thread reads all tokens that count. Threadgroup memory: 16 KB for the lengths of repetitions.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

constant constexpr uint DRY_MAX = 8192;

// The tokens of one sequence, from the last one backwards: token t lies at t % stride.
struct Recent {
    device const uint *tokens;
    uint stride;
    uint length;
    uint start;

    uint back(uint i) const {
        return tokens[(length - 1 - i) % stride];
    }

    uint n_counted(uint window) const {
        const uint n = length - min(start, length);
        return min(min(window == 0 ? n : window, n), stride);
    }
};

inline bool has_bit(device const uint *bits, uint at) {
    return ((bits[at / 32] >> (at % 32)) & 1) != 0;
}

// Occurrences of the i-th last token among the last n; 0 if it comes again after that.
inline uint occurrences(Recent recent, uint i, uint n) {
    const uint id = recent.back(i);
    for (uint j = 0; j < i; ++j) {
        if (recent.back(j) == id) {
            return 0;
        }
    }
    uint count = 1;
    for (uint j = i + 1; j < n; ++j) {
        count += recent.back(j) == id ? 1 : 0;
    }
    return count;
}

// How many of the last tokens are also those up to the k-th last one.
inline uint repeated(Recent recent, uint k, uint n, uint limit) {
    uint length = 0;
    while (length < limit && length + k < n && recent.back(length) == recent.back(length + k)) {
        ++length;
    }
    return length;
}

// Whether repetition k is the longest that the same token would go on with, and the first of those.
inline bool is_longest(Recent recent, uint k, uint n, threadgroup const ushort *lengths) {
    const uint id = recent.back(k - 1);
    for (uint other = 1; other < n; ++other) {
        const bool wins = lengths[other] > lengths[k] || (lengths[other] == lengths[k] && other < k);
        if (wins && recent.back(other - 1) == id) {
            return false;
        }
    }
    return true;
}

// base^n by squaring: products alone, which every device rounds alike.
inline float power(float base, uint n) {
    float product = 1.0f;
    while (n > 0) {
        if (n % 2 == 1) {
            product *= base;
        }
        base *= base;
        n /= 2;
    }
    return product;
}

// Infinitely much where it is no number.
inline float dry_penalty(device const SamplingRule &rule, uint length) {
    return rule.dry_multiplier * power(rule.dry_base, length - rule.dry_allowed);
}

kernel void penalties_f32(
    device float *logits              [[buffer(0)]],
    constant PenaltiesParams &params  [[buffer(1)]],
    device const uint *outputs        [[buffer(2)]],
    device const Row *rows            [[buffer(3)]],
    device const SamplingRule *rules  [[buffer(4)]],
    device const uint *history        [[buffer(5)]],
    device const uint *bias_tokens    [[buffer(6)]],
    device const float *bias_values   [[buffer(7)]],
    device const uint *breakers       [[buffer(8)]],
    uint output                       [[threadgroup_position_in_grid]],
    uint n_threads                    [[threads_per_threadgroup]],
    uint thread_index                 [[thread_index_in_threadgroup]]
) {
    threadgroup ushort lengths[DRY_MAX];
    threadgroup atomic_uint first_breaker;

    device const Row &row = rows[outputs[output]];
    if (!is_active(row)) {
        return;
    }
    const uint sequence = row.sequence;
    device const SamplingRule &rule = rules[sequence];
    const uint vocab_size = params.vocab_size;
    device float *own = logits + ulong(output) * vocab_size;
    const Recent recent = {
        history + ulong(sequence) * params.history_stride, params.history_stride, row.length,
        rule.penalty_start,
    };

    const uint n_biases = min(rule.n_biases, params.bias_stride);
    for (uint i = thread_index; i < n_biases; i += n_threads) {
        const ulong at = ulong(sequence) * params.bias_stride + i;
        if (bias_tokens[at] < vocab_size) {
            own[bias_tokens[at]] += bias_values[at];
        }
    }
    if (n_biases > 0) {
        threadgroup_barrier(mem_flags::mem_device);
    }

    const bool penalises = rule.repetition != 1.0f || rule.frequency != 0.0f || rule.presence != 0.0f;
    const uint n_counted = penalises ? recent.n_counted(rule.penalty_window) : 0;
    for (uint i = thread_index; i < n_counted; i += n_threads) {
        const uint id = recent.back(i);
        const uint count = id < vocab_size ? occurrences(recent, i, n_counted) : 0;
        if (count > 0) {
            const float logit = own[id];
            const float changed = logit > 0.0f ? logit / rule.repetition : logit * rule.repetition;
            own[id] = changed - (float(count) * rule.frequency + rule.presence);
        }
    }

    if (!(rule.dry_multiplier > 0.0f)) {
        return;
    }
    const uint n = min(recent.n_counted(rule.dry_window), DRY_MAX);
    const uint allowed = max(rule.dry_allowed, 1u);
    device const uint *own_breakers = breakers + ulong(sequence) * ((vocab_size + 31) / 32);
    if (thread_index == 0) {
        atomic_store_explicit(&first_breaker, n, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < n; i += n_threads) {
        const uint id = recent.back(i);
        if (id < vocab_size && has_bit(own_breakers, id)) {
            atomic_fetch_min_explicit(&first_breaker, i, memory_order_relaxed);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint limit = atomic_load_explicit(&first_breaker, memory_order_relaxed);
    for (uint k = 1 + thread_index; k < n; k += n_threads) {
        lengths[k] = ushort(repeated(recent, k, n, limit));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 1 + thread_index; k < n; k += n_threads) {
        const uint id = recent.back(k - 1);
        if (lengths[k] >= allowed && id < vocab_size && !has_bit(own_breakers, id) && is_longest(recent, k, n, lengths)) {
            own[id] -= dry_penalty(rule, lengths[k]);
        }
    }
}
