// How the sums of shared_gemm.h and async_gemm.h become y, where threadgroups may share an output.
#pragma once

#include "include/arrive.h"
#include "include/lane_sums.h"

// Where the sums of a threadgroup go.
struct SumsPlace {
    device float *y;
    device float *parts;
    device uint *arrived;
    threadgroup uint *n_before;  // for one number that nobody else uses
};

// Stores sums that were scaled, plus beta times what y holds. If K has parts, they are left for each other, and the last to arrive
// adds them up, always in the same order, to what y holds. `has_sums`: whether this SIMD group has any. All threads must call it.
template <uint MATRICES, uint TILES>
inline void store_shared(
    thread LaneSums<MATRICES, TILES> &mine, bool has_sums, constant DecodeGemmParams &params, ChosenWeight chosen, SumsPlace to,
    uint3 group, uint thread_index
) {
    const bool has_parts = params.n_parts > 1;
    const uint stride = (params.M + X_ROWS - 1) / X_ROWS * X_ROWS;
    const ulong part_stride = ulong(params.N0 + params.N1 + params.N2) * stride;
    device float *all = to.parts + pick(chosen.index, 0u, params.N0, params.N0 + params.N1) * stride;
    if (has_parts) {
        if (has_sums) {
            mine.leave(all + group.z * part_stride, stride);
        }
        const uint n_m = (params.M + TILES * X_ROWS - 1) / (TILES * X_ROWS);
        device uint *counter = to.arrived + group.y * n_m + group.x;
        if (!are_all_there(counter, to.n_before, params.n_parts, thread_index)) {
            return;
        }
        if (thread_index == 0) {
            *counter = 0;
        }
        mine.clear();
    }
    if (!has_sums) {
        return;
    }
    // First, so that it is asked for together with the parts.
    if (params.beta != 0.0f) {
        LaneSums<MATRICES, TILES> before = mine;
        before.load(to.y);
        mine.add(before, params.beta);
    }
    for (uint part = 0; has_parts && part < params.n_parts; part++) {
        mine.add(all + part * part_stride, stride);
    }
    mine.store(to.y);
}
