// The best candidate of a threadgroup, and where a chosen token goes.
#pragma once

#include <metal_stdlib>

#include "include/reduce.h"
#include "include/row_table.h"

using namespace metal;

constant constexpr uint NO_CANDIDATE = 0xFFFFFFFFu;

// A value and its place. Larger values win, then lower places. NaN loses to everything, as it
// compares false.
struct Candidate {
    float value;
    uint place;
};

inline Candidate no_candidate() {
    return Candidate{-INFINITY, NO_CANDIDATE};
}

inline Candidate better(Candidate best, float value, uint place) {
    const bool wins = value > best.value || (value == best.value && place < best.place);
    return wins ? Candidate{value, place} : best;
}

inline Candidate simd_best(Candidate mine) {
    const float value = simd_max(mine.value);
    const uint place = simd_min(mine.value == value ? mine.place : NO_CANDIDATE);
    return Candidate{value, place};
}

// The best candidate of all threads, for every thread. Each array has room for a SIMD group each.
inline Candidate threadgroup_best(
    Candidate mine, threadgroup float *values, threadgroup uint *places, SimdPlace at
) {
    const Candidate best = simd_best(mine);
    if (at.lane == 0) {
        values[at.group] = best.value;
        places[at.group] = best.place;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Candidate other = no_candidate();
    if (at.lane < at.n_groups) {
        other = Candidate{values[at.lane], places[at.lane]};
    }
    const Candidate total = simd_best(other);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return total;
}

// Stores the token that a row chose, and in the history of its sequence: token t lies at t % history_stride,
// and a row of length n chooses token n.
inline void store_token(
    uint chosen, device uint *token, device uint *history, device const Row &row, uint history_stride
) {
    *token = chosen;
    if (history_stride > 0) {
        history[ulong(row.sequence) * history_stride + row.length % history_stride] = chosen;
    }
}
