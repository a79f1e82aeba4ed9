// Products of one normalised vector with up to three weights (N_i, K) in one format:
//
//     y_i[n] = 1 / sqrt(mean(x^2) + eps) * sum_k weight_i[n][k] * gain[k] * x[k]
//
// The norm costs no pass of its own: the factor of the root is the same for all outputs, and the squares are summed while x
// is staged.
//
// Launch:  a threadgroup for each ROWS outputs of a weight, those of weight 0 first; up to MAX_SPLIT SIMD groups, which
//          split K as in include/dot_spans.h.
// Memory:  every weight is read once; x and gain once for ROWS outputs (from cache), by float4: both begin at a
//          multiple of 16 bytes, and K is a multiple of 4.
#pragma once

#include "include/dot_spans.h"
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

// Which weight a threadgroup works on, its rows, and which of its threadgroups it is.
struct NormedWeight {
    uint index;
    uint n;
    uint group;
};

inline NormedWeight normed_weight(constant NormGemvParams &params, uint group, uint rows_a_group) {
    const uint groups_0 = (params.N0 + rows_a_group - 1) / rows_a_group;
    const uint groups_1 = (params.N1 + rows_a_group - 1) / rows_a_group;
    if (group >= groups_0 + groups_1) {
        return { 2, params.N2, group - groups_0 - groups_1 };
    }
    if (group >= groups_0) {
        return { 1, params.N1, group - groups_0 };
    }
    return { 0, params.N0, group };
}

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

    const NormedWeight of = normed_weight(params, group, ROWS);
    device const uchar *weight = of.index == 0 ? weight_0 : of.index == 1 ? weight_1 : weight_2;
    device float *y = of.index == 0 ? y_0 : of.index == 1 ? y_1 : y_2;
    const uint first = of.group * ROWS;
    const WeightLayout layout = { of.n, params.K, params.group_size, of.n * (params.K / 8 * params.bits) };
    typename Spans<F>::Row rows[ROWS];
    take_span_rows<F, ROWS>(weight, layout, first, rows);
    typename F::Row plain[ROWS];
    take_rows<F, ROWS>(weight, layout, first, plain);

    const SplitPlace place = { simd_group, n_simd_groups, lane, stages + simd_group * STAGE_VECTORS };
    float sums[ROWS] = { 0.0f };
    GainedX gained = { x, gain, 0.0f };
    dot_spans<F, ROWS>(rows, gained, params.K, place, sums);
    if (simd_group == 0) {
        dot_rest<F, ROWS>(plain, gained, params.K, lane, sums);
    }

    leave_shares<ROWS, SUMS>(sums, shares, place);
    const float square = simd_sum(gained.square);
    if (lane == ROWS) {
        shares[simd_group * SUMS + ROWS] = square;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < ROWS && first + thread_index < of.n) {
        float product = 0.0f;
        float squares = 0.0f;
        for (uint s = 0; s < n_simd_groups; s++) {
            product += shares[s * SUMS + thread_index];
            squares += shares[s * SUMS + ROWS];
        }
        y[first + thread_index] = product * inverse_rms(squares, params.K, params.eps);
    }
}
