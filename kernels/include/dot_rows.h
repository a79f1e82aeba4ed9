// Dot products of a vector with several rows of a weight matrix, by one SIMD group.
//
// Each lane takes every 32nd pair of runs (16 values): it reads x once and each row's weights once, and
// leaves its share of each row's sum in registers. The caller adds the lanes up.
#pragma once

#include "include/format/all.h"
#include "include/reduce.h"

// 8 values of x and their sum.
struct XRun {
    float4 low;
    float4 high;
    float sum;
};

inline XRun x_run(float4 low, float4 high) {
    const float4 both = low + high;
    return XRun{ low, high, both.x + both.y + both.z + both.w };
}

// x in device memory. It is aligned to 4 bytes: rows may have any length.
struct DeviceX {
    device const float *x;

    XRun run(uint index) const {
        device const packed_float4 *p = (device const packed_float4 *)(x + RUN * index);
        return x_run(float4(p[0]), float4(p[1]));
    }
    float value(uint i) const { return x[i]; }
};

// x in threadgroup memory, from memory that starts at a multiple of 16 bytes.
struct ThreadgroupX {
    threadgroup const float *x;

    XRun run(uint index) const {
        threadgroup const float4 *p = (threadgroup const float4 *)(x + RUN * index);
        return x_run(p[0], p[1]);
    }
    float value(uint i) const { return x[i]; }
};

template <typename F>
inline float dot_run(Run w, XRun x) {
    const float product = w.scale * (dot(w.low, x.low) + dot(w.high, x.high));
    return F::HAS_OFFSET ? product + w.offset * x.sum : product;
}

// The first run of a pair; the second is PAIR_GAP behind it.
template <typename F>
inline uint first_of_pair(uint pair) {
    return pair / F::PAIR_GAP * (2 * F::PAIR_GAP) + pair % F::PAIR_GAP;
}

// Rows first .. first + ROWS; those beyond the end repeat the last one and are not stored.
template <typename F, uint ROWS>
inline void take_rows(device const uchar *weight, WeightLayout at, uint first, thread typename F::Row (&rows)[ROWS]) {
    for (uint r = 0; r < ROWS; r++) {
        rows[r] = F::row(weight, at, min(first + r, at.n_rows - 1));
    }
}

// Adds to sums[r] this lane's share of sum(row_r[begin + i] * x[i]), i < count. `begin` and all counts
// but the last are multiples of 16 (of 128 for the K formats), so that pairs stay whole.
template <typename F, uint ROWS, typename X>
inline void dot_rows(thread typename F::Row (&rows)[ROWS], X x, uint2 begin_count, uint lane, thread float (&sums)[ROWS]) {
    const uint first_run = begin_count.x / RUN;
    const uint n_runs = whole_runs<F>(begin_count.y);
    for (uint pair = lane; pair < n_runs / 2; pair += SIMD_WIDTH) {
        const uint a = first_of_pair<F>(pair);
        const uint b = a + F::PAIR_GAP;
        const XRun xa = x.run(a);
        const XRun xb = x.run(b);
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            sums[r] += dot_run<F>(F::run(rows[r], first_run + a), xa);
            sums[r] += dot_run<F>(F::run(rows[r], first_run + b), xb);
        }
    }
    // Plain numbers: what is left behind the last pair, fewer than 16 values.
    const uint i = n_runs / 2 * (2 * RUN) + lane;
    if (F::BLOCK == 1 && i < begin_count.y) {
        for (uint r = 0; r < ROWS; r++) {
            sums[r] += F::value(rows[r], begin_count.x + i) * x.value(i);
        }
    }
}

// y = alpha * product + beta * y, where beta = 0 does not look at y.
template <typename P>
inline void store_product(device float *y, float product, constant P &params) {
    float result = params.alpha * product;
    if (params.beta != 0.0f) {
        result += params.beta * *y;
    }
    *y = result;
}
