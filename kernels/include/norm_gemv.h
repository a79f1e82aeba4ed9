// Products of one normalised vector with up to three weights (N_i, K) in one format:
//
//     y_i[n] = 1 / sqrt(mean(x^2) + eps) * sum_k weight_i[n][k] * gain[k] * x[k]
//
// The norm costs no pass of its own: the factor of the root is the same for all outputs, and the squares are summed while x
// is staged.
//
// Launch:  a threadgroup for each ROWS outputs of a weight, those of weight 0 first; up to MAX_SPLIT SIMD groups, which
//          split K as in include/gemv_split.h.
// Memory:  every weight is read once; x and gain once for ROWS outputs (from cache), by float4: both begin at a
//          multiple of 16 bytes, and K is a multiple of 4.
#pragma once

#include "include/gemv_split.h"
#include "include/row.h"

// gain * x; what is read is squared and summed.
struct GainedX {
    device const float *x;
    device const float *gain;
    float square;

    float4 vector(uint i) {
        const float4 v = ((device const float4 *)x)[i];
        square += dot(v, v);
        return ((device const float4 *)gain)[i] * v;
    }
    float value(uint i) {
        square += x[i] * x[i];
        return gain[i] * x[i];
    }
};

template <typename F, uint ROWS>
kernel void norm_gemv(
    device const float *x           [[buffer(0)]],  // (K)
    device const float *gain        [[buffer(1)]],  // (K)
    device const uchar *weight_0    [[buffer(2)]],  // (N0, K)
    device const uchar *weight_1    [[buffer(3)]],  // (N1, K)
    device const uchar *weight_2    [[buffer(4)]],  // (N2, K)
    device float *y_0               [[buffer(5)]],  // (N0)
    device float *y_1               [[buffer(6)]],  // (N1)
    device float *y_2               [[buffer(7)]],  // (N2)
    constant NormGemvParams &params [[buffer(8)]],
    uint group                      [[threadgroup_position_in_grid]],
    uint thread_index               [[thread_index_in_threadgroup]],
    uint simd_group                 [[simdgroup_index_in_threadgroup]],
    uint lane                       [[thread_index_in_simdgroup]],
    uint n_simd_groups              [[simdgroups_per_threadgroup]]
) {
    constexpr uint SUMS = ROWS + 1;
    threadgroup float4 stages[MAX_SPLIT * STAGE_VECTORS];
    threadgroup float shares[MAX_SPLIT * SUMS];
    static_assert(sizeof(stages) + sizeof(shares) <= 32 * 1024, "threadgroup memory");

    // Which weight this threadgroup works on.
    const uint groups_0 = (params.N0 + ROWS - 1) / ROWS;
    const uint groups_1 = (params.N1 + ROWS - 1) / ROWS;
    device const uchar *weight = weight_0;
    device float *y = y_0;
    uint n = params.N0;
    uint at = group;
    if (group >= groups_0 + groups_1) {
        weight = weight_2;
        y = y_2;
        n = params.N2;
        at = group - groups_0 - groups_1;
    } else if (group >= groups_0) {
        weight = weight_1;
        y = y_1;
        n = params.N1;
        at = group - groups_0;
    }
    const uint first = at * ROWS;
    const WeightLayout layout = { n, params.K, params.group_size, n * (params.K / 8 * params.bits) };
    typename Spans<F>::Row rows[ROWS];
    take_span_rows<F, ROWS>(weight, layout, first, rows);
    typename F::Row plain[ROWS];
    take_rows<F, ROWS>(weight, layout, first, plain);

    const SplitPlace place = { simd_group, n_simd_groups, lane, stages + simd_group * STAGE_VECTORS };
    float sums[ROWS] = { 0.0f };
    GainedX gained = { x, gain, 0.0f };
    dot_spans<F, ROWS>(rows, gained, params.K, place, sums);
    dot_rest<F, ROWS>(plain, gained, params.K, place, sums);

    leave_shares<ROWS, SUMS>(sums, shares, place);
    const float square = simd_sum(gained.square);
    if (lane == ROWS) {
        shares[simd_group * SUMS + ROWS] = square;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < ROWS && first + thread_index < n) {
        float product = 0.0f;
        float squares = 0.0f;
        for (uint s = 0; s < n_simd_groups; s++) {
            product += shares[s * SUMS + thread_index];
            squares += shares[s * SUMS + ROWS];
        }
        y[first + thread_index] = product * inverse_rms(squares, params.K, params.eps);
    }
}
