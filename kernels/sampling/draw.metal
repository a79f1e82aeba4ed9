// draw_f32: draws the next token of each row from its whole vocabulary, by the rule of its sequence
//
// Row i of the logits belongs to row outputs[i] of the row table, whose sequence has the rule. In this order:
//
//   top-n-sigma   keeps logits within n standard deviations of the best one
//   top-k         keeps the k best
//   typical       keeps those whose surprise is nearest to the expected one, until they sum to typical_p
//   top-p         keeps the best until their probabilities sum to top_p
//   min-p         keeps those at least min_p times as probable as the best
//   XTC           now and then leaves out all that are probable enough but the least probable of them
//   temperature   fixed, or moved by the entropy of what is left
//   draw          the largest of noise - d / temperature: with Gumbel noise a draw from the softmax
//
// Each cut sees the probabilities of what the cuts before it have kept. Tokens that are exactly as probable as the
// last one kept are kept with it. Mirostat takes the place of all cuts: it keeps tokens whose surprise at the
// temperature is at most mu, and moves mu by how surprising the drawn one was. A temperature of 0 takes the best
// token. An idle row gets token 0 and no history.
//
// Launch:  one threadgroup of up to 1024 threads a row.
// Memory:  the logits are read once for the best, once for each sum or digit of a cut (three for a limit), and once
//          for the draw. Threadgroup memory: 16 KB of histogram, 512 bytes of sums.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/candidates.h"
#include "include/choice.h"
#include "include/philox.h"
#include "include/reduce.h"

using namespace metal;

constant constexpr float LN_2 = 0.6931471805599453f;

// Where the random numbers of a row come from.
struct Source {
    uint2 seed;
    uint position;

    // The noise of four neighbouring tokens.
    uint4 of_tokens(uint first) const {
        return philox(uint4(first / 4, position, 0, 0), seed);
    }

    // A number that has nothing to do with a token.
    float chance() const {
        return open_unit(philox(uint4(0, position, 1, 0), seed).x);
    }
};

inline bool cuts(float p) {
    return p > 0.0f && p < 1.0f;
}

inline float log_mass(ulong mass) {
    return precise::log(float(mass) / MASS_UNIT);
}

// What the cuts of a rule leave.
inline Kept after_cuts(Candidates all, device const SamplingRule &rule, Source source) {
    Kept kept = { 0, KEY_MAX, 0.0f, KEY_MAX };
    if (rule.n_sigma > 0.0f) {
        kept.last = key_of(rule.n_sigma * all.deviation());
    }
    if (rule.top_k > 0 && rule.top_k < all.n) {
        const uint limit = all.limit(kept, rule.top_k, true, false, 0.0f);
        kept.last = min(kept.last, limit);
    }
    if (cuts(rule.typical_p)) {
        const Totals totals = all.totals(kept, 1.0f);
        const float center = float(totals.moment) / float(totals.mass);
        const ulong wanted = share_of(totals.mass, rule.typical_p);
        kept.radius = all.limit(kept, wanted, false, true, center);
        kept.center = center;
    }
    if (cuts(rule.top_p)) {
        const ulong wanted = share_of(all.totals(kept, 1.0f).mass, rule.top_p);
        kept.last = min(kept.last, all.limit(kept, wanted, false, false, 0.0f));
    }
    if (rule.min_p > 0.0f) {
        // Without typical sampling or XTC the best candidate has the distance 0; otherwise it is the least kept one.
        const uint first = rule.typical_p > 0.0f ? all.limit(kept, 1, true, false, 0.0f) : 0;
        const uint beyond = key_of(-precise::log(rule.min_p));
        kept.last = min(kept.last, beyond > KEY_MAX - first ? KEY_MAX : first + beyond);
    }
    if (rule.xtc_probability > 0.0f && rule.xtc_threshold <= 0.5f && source.chance() <= rule.xtc_probability) {
        const ulong mass = all.totals(kept, 1.0f).mass;
        kept.first = all.last_of_weight(kept, share_of(mass, rule.xtc_threshold));
    }
    return kept;
}

// The temperature of the draw.
inline float temperature_of(Candidates all, device const SamplingRule &rule, Kept kept) {
    if (!(rule.dynamic_range > 0.0f)) {
        return rule.temperature;
    }
    const Totals totals = all.totals(kept, 1.0f);
    if (totals.count < 2) {
        return rule.temperature;
    }
    const float entropy = log_mass(totals.mass) + float(totals.moment) / float(totals.mass);
    const float share = clamp(entropy / precise::log(float(totals.count)), 0.0f, 1.0f);
    const float least = max(rule.temperature - rule.dynamic_range, 0.0f);
    const float most = rule.temperature + rule.dynamic_range;
    return least + (most - least) * precise::pow(share, rule.dynamic_exponent);
}

kernel void draw_f32(
    device const float *logits        [[buffer(0)]],
    device uint *tokens               [[buffer(1)]],
    device uint *history              [[buffer(2)]],
    constant DrawParams &params       [[buffer(3)]],
    device const uint *outputs        [[buffer(4)]],
    device const Row *rows            [[buffer(5)]],
    device const SamplingRule *rules  [[buffer(6)]],
    device float *mu                  [[buffer(7)]],
    uint output                       [[threadgroup_position_in_grid]],
    uint n_threads                    [[threads_per_threadgroup]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]],
    uint n_simd_groups                [[simdgroups_per_threadgroup]]
) {
    threadgroup atomic_uint low[N_BINS];
    threadgroup atomic_uint high[N_BINS];
    threadgroup ulong sums[N_SUMS];
    threadgroup Digit digit;
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
    device const float *own = logits + ulong(output) * params.vocab_size;

    Candidate mine = no_candidate();
    for (uint i = thread_index; i < params.vocab_size; i += n_threads) {
        mine = better(mine, own[i], i);
    }
    const Candidate top = threadgroup_best(mine, shared, shared_places, at);
    const bool is_free = top.value > -INFINITY && rule.temperature > 0.0f;
    if (!is_free) {
        if (thread_index == 0) {
            const uint token = top.place == NO_CANDIDATE ? 0 : top.place;
            store_token(token, tokens + output, history, row, params.history_stride);
        }
        return;
    }

    const Source source = { uint2(rule.seed_lo, rule.seed_hi), row.position };
    const Candidates all = {
        own, params.vocab_size, top.value, thread_index, n_threads, at, Bins{ low, high }, sums, &digit, shared,
    };
    const bool is_mirostat = rule.mirostat_tau > 0.0f;
    Kept kept = { 0, KEY_MAX, 0.0f, KEY_MAX };
    float temperature = rule.temperature;
    const float bound = mu[row.sequence];
    if (is_mirostat) {
        const ulong mass = all.totals(kept, 1.0f / temperature).mass;
        kept.last = key_of((bound * LN_2 - log_mass(mass)) * temperature);
    } else {
        kept = after_cuts(all, rule, source);
        temperature = temperature_of(all, rule, kept);
    }

    const bool is_drawn = temperature > 0.0f;
    const float scale = is_drawn ? 1.0f / temperature : 1.0f;
    mine = no_candidate();
    for (uint first = 4 * thread_index; first < params.vocab_size; first += 4 * n_threads) {
        const uint4 bits = source.of_tokens(first);
        for (uint i = 0; i < 4; ++i) {
            const uint token = first + i;
            if (token < params.vocab_size && own[token] > -INFINITY) {
                const float distance = distance_of(top.value, own[token]);
                if (kept.has(distance)) {
                    const float noise = is_drawn ? gumbel(bits[i]) : 0.0f;
                    mine = better(mine, noise - distance * scale, token);
                }
            }
        }
    }
    const Candidate drawn = threadgroup_best(mine, shared, shared_places, at);
    const uint token = drawn.place == NO_CANDIDATE ? top.place : drawn.place;
    if (is_mirostat) {
        const float log_total = log_mass(all.totals(kept, scale).mass);
        if (thread_index == 0) {
            const float surprise = (distance_of(top.value, own[token]) * scale + log_total) / LN_2;
            mu[row.sequence] = bound - rule.mirostat_eta * (surprise - rule.mirostat_tau);
        }
    }
    if (thread_index == 0) {
        store_token(token, tokens + output, history, row, params.history_stride);
    }
}
