// The candidates of a choice, and limits among them that need no sorting.
//
// A candidate is a finite logit. Its distance from the best one, d = best - logit, is all that counts: its weight is
// exp(-d), and the better it is, the smaller is d. The key of a distance is d in units of 2^-24, cut off at 256:
// whole numbers in the order of the distances, the same on every executor. Weights are summed as whole numbers of
// units of 2^-40, so that a sum does not depend on who adds first.
#pragma once

#include <metal_stdlib>

#include "include/reduce.h"

using namespace metal;

constant constexpr uint N_BINS = 2048;
constant constexpr uint BINS_OF_A_SUM = 64;
constant constexpr uint N_SUMS = N_BINS / BINS_OF_A_SUM;
constant constexpr uint KEY_MAX = 0xFFFFFFFFu;
constant constexpr float MASS_UNIT = 0x1p40f;

inline float distance_of(float best, float logit) {
    return logit == best ? 0.0f : best - logit;
}

// A limit that is not a number limits nothing.
inline uint key_of(float distance) {
    if (!(distance < 256.0f)) {
        return KEY_MAX;
    }
    return uint(max(distance, 0.0f) * 0x1p24f);
}

inline ulong mass_of(float weight) {
    return ulong(weight * MASS_UNIT);
}

// The share p of a mass, p between 0 and 1; at least 1.
inline ulong share_of(ulong mass, float p) {
    const ulong factor = ulong(p * 0x1p24f);
    return max((mass >> 24) * factor + (((mass & 0xFFFFFF) * factor) >> 24), ulong(1));
}

// Which candidates are kept: those with a key from first to last, at most `radius` away from `center`.
struct Kept {
    uint first;
    uint last;
    float center;
    uint radius;

    bool has(float distance) const {
        const uint key = key_of(distance);
        return first <= key && key <= last && (radius == KEY_MAX || key_of(abs(distance - center)) <= radius);
    }
};

// Sums of 64 bits, each in two words: a carry of the low one goes to the high one.
struct Bins {
    threadgroup atomic_uint *low;
    threadgroup atomic_uint *high;

    void clear(uint bin) const {
        atomic_store_explicit(&low[bin], 0, memory_order_relaxed);
        atomic_store_explicit(&high[bin], 0, memory_order_relaxed);
    }

    void add(uint bin, ulong mass) const {
        const uint of_low = uint(mass);
        const uint before = atomic_fetch_add_explicit(&low[bin], of_low, memory_order_relaxed);
        const uint of_high = uint(mass >> 32) + (before > KEY_MAX - of_low ? 1 : 0);
        if (of_high != 0) {
            atomic_fetch_add_explicit(&high[bin], of_high, memory_order_relaxed);
        }
    }

    ulong sum(uint bin) const {
        const ulong of_high = atomic_load_explicit(&high[bin], memory_order_relaxed);
        return (of_high << 32) | atomic_load_explicit(&low[bin], memory_order_relaxed);
    }
};

// What the threads of one digit of a search share.
struct Digit {
    uint bin;
    ulong wanted;  // what is still wanted of the candidates in that bin
};

// Sums over the kept candidates.
struct Totals {
    ulong mass;    // of the weights
    ulong moment;  // of weights times distances
    uint count;
};

// The logits of one row, and the threads that look at them together.
struct Candidates {
    device const float *logits;
    uint n;
    float best;
    uint thread_index;
    uint n_threads;
    SimdPlace at;
    Bins bins;
    threadgroup ulong *sums;    // (N_SUMS)
    threadgroup Digit *digit;
    threadgroup float *shared;  // (MAX_SIMD_GROUPS)

    // The sums with weights exp(-d * scale).
    Totals totals(Kept kept, float scale) const {
        ulong mass = 0;
        ulong moment = 0;
        ulong count = 0;
        for (uint i = thread_index; i < n; i += n_threads) {
            const float distance = distance_of(best, logits[i]);
            if (logits[i] > -INFINITY && kept.has(distance)) {
                const float weight = precise::exp(-distance * scale);
                mass += mass_of(weight);
                moment += weight > 0.0f ? mass_of(weight * distance) : 0;
                count += 1;
            }
        }
        if (thread_index < 3) {
            bins.clear(thread_index);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        bins.add(0, mass);
        bins.add(1, moment);
        bins.add(2, count);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const Totals totals = { bins.sum(0), bins.sum(1), uint(bins.sum(2)) };
        threadgroup_barrier(mem_flags::mem_threadgroup);
        return totals;
    }

    // The least key such that the kept candidates up to it weigh `wanted`, each exp(-d) or, if they are counted, 1.
    // With a center the keys are those of the distances from it. The digits of the key are found from the highest
    // on, each by a histogram of the candidates that have the digits before it.
    uint limit(Kept kept, ulong wanted, bool is_counted, bool has_center, float center) const {
        uint key_so_far = 0;
        uint shift = 32;
        while (shift > 0) {
            const uint bits = min(shift, 11u);
            const uint above = shift;
            shift -= bits;
            for (uint bin = thread_index; bin < N_BINS; bin += n_threads) {
                bins.clear(bin);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint i = thread_index; i < n; i += n_threads) {
                const float distance = distance_of(best, logits[i]);
                const uint key = key_of(has_center ? abs(distance - center) : distance);
                const bool is_inside = above == 32 || (key >> (above % 32)) == key_so_far;
                if (is_inside && logits[i] > -INFINITY && kept.has(distance)) {
                    const ulong mass = is_counted ? 1 : mass_of(precise::exp(-distance));
                    bins.add((key >> shift) & ((1u << bits) - 1), mass);
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            find_digit(wanted);
            key_so_far = (key_so_far << bits) | digit->bin;
            wanted = digit->wanted;
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        return key_so_far;
    }

    // The bin with which the sum of all up to it reaches what is wanted.
    void find_digit(ulong wanted) const {
        for (uint sum = thread_index; sum < N_SUMS; sum += n_threads) {
            ulong of_bins = 0;
            for (uint bin = 0; bin < BINS_OF_A_SUM; ++bin) {
                of_bins += bins.sum(sum * BINS_OF_A_SUM + bin);
            }
            sums[sum] = of_bins;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_index == 0) {
            ulong before = 0;
            uint sum = 0;
            while (sum < N_SUMS - 1 && before + sums[sum] < wanted) {
                before += sums[sum];
                ++sum;
            }
            uint bin = sum * BINS_OF_A_SUM;
            while (bin < (sum + 1) * BINS_OF_A_SUM - 1 && before + bins.sum(bin) < wanted) {
                before += bins.sum(bin);
                ++bin;
            }
            digit->bin = bin;
            digit->wanted = wanted > before ? wanted - before : 0;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // The standard deviation of all finite logits.
    float deviation() const {
        float sum = 0.0f;
        float count = 0.0f;
        for (uint i = thread_index; i < n; i += n_threads) {
            if (logits[i] > -INFINITY) {
                sum += distance_of(best, logits[i]);
                count += 1.0f;
            }
        }
        const float n_counted = threadgroup_sum(count, shared, at);
        const float mean = threadgroup_sum(sum, shared, at) / n_counted;
        float squares = 0.0f;
        for (uint i = thread_index; i < n; i += n_threads) {
            if (logits[i] > -INFINITY) {
                const float off = distance_of(best, logits[i]) - mean;
                squares += off * off;
            }
        }
        return precise::sqrt(threadgroup_sum(squares, shared, at) / n_counted);
    }

    // The key of the least probable kept candidate that weighs at least `mass`.
    uint last_of_weight(Kept kept, ulong mass) const {
        uint last = 0;
        for (uint i = thread_index; i < n; i += n_threads) {
            const float distance = distance_of(best, logits[i]);
            const bool is_kept = logits[i] > -INFINITY && kept.has(distance);
            if (is_kept && mass_of(precise::exp(-distance)) >= mass) {
                last = max(last, key_of(distance));
            }
        }
        if (thread_index == 0) {
            bins.clear(0);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        atomic_fetch_max_explicit(&bins.low[0], last, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint found = atomic_load_explicit(&bins.low[0], memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        return found;
    }
};
