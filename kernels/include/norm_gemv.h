// Products of one normalised vector with up to three weights (N_i, K) in one format:
//
//     y_i[n] = 1 / sqrt(mean(x^2) + eps) * sum_k weight_i[n][k] * gain[k] * x[k]
//
// With FC_GATE weight 0 is a gate and weight 1 what it lets through, both (N0, K), and the only result is
//
//     y_0[n] = act(product with weight 0) * (product with weight 1)
//
// The norm costs no pass of its own: the factor of the root is the same for all outputs, and the squares are summed while x
// is staged.
//
// Launch:  a threadgroup for each ROWS outputs of a weight, those of weight 0 first; with FC_GATE for each ROWS / 2 outputs
//          of both; up to MAX_SPLIT SIMD groups, which split K as in include/dot_spans.h.
// Memory:  every weight is read once; x and gain once for ROWS outputs (from cache), by float4: both begin at a
//          multiple of 16 bytes, and K is a multiple of 4.
#pragma once

#include "include/activation.h"
#include "include/dot_spans.h"
#include "include/matmul_constants.h"
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

// ceil(n / d), d a power of two.
inline uint ceil_divide(uint n, uint d) { return (n + d - 1) >> ctz(d); }

// Threadgroups of all weights, or with FC_GATE of weight 0, where each has rows of both. `rows_a_group` is a power of two.
inline uint n_normed_groups(constant NormGemvParams &params, uint rows_a_group) {
    const uint groups_0 = ceil_divide(params.N0, rows_a_group);
    return GATE != 0
        ? groups_0
        : groups_0 + ceil_divide(params.N1, rows_a_group) + ceil_divide(params.N2, rows_a_group);
}

inline NormedWeight normed_weight(constant NormGemvParams &params, uint group, uint rows_a_group) {
    const uint groups_0 = ceil_divide(params.N0, rows_a_group);
    const uint groups_1 = ceil_divide(params.N1, rows_a_group);
    if (GATE == 0 && group >= groups_0 + groups_1) {
        return { 2, params.N2, group - groups_0 - groups_1 };
    }
    if (GATE == 0 && group >= groups_0) {
        return { 1, params.N1, group - groups_0 };
    }
    return { 0, params.N0, group };
}

// Where the rows of a weight lie, and those of weight 1, which a gate needs beside weight 0.
struct NormedLayout {
    WeightLayout weight;
    WeightLayout let_through;
};

inline NormedLayout normed_layout(constant NormGemvParams &p, NormedWeight of) {
    const WeightLayout one = { of.n, p.K, p.group_size, p.scale_type, p.packed_1, p.scales_1, p.biases_1 };
    WeightLayout own = one;
    if (of.index == 0) {
        own = { of.n, p.K, p.group_size, p.scale_type, p.packed_0, p.scales_0, p.biases_0 };
    } else if (of.index == 2) {
        own = { of.n, p.K, p.group_size, p.scale_type, p.packed_2, p.scales_2, p.biases_2 };
    }
    return { own, one };
}

// The sum of what all SIMD groups have left at place `which`.
template <uint STRIDE>
inline float sum_of_shares(threadgroup const float *shares, uint which, uint n_simd_groups) {
    float sum = 0.0f;
    for (uint s = 0; s < n_simd_groups; s++) {
        sum += shares[s * STRIDE + which];
    }
    return sum;
}

inline float apply_gate(float product) { return GATE == 1 ? act_silu(product) : act_gelu(product); }

// Weight 0, 1 or 2, and weight 1, which a gate needs beside weight 0.
struct NormedFrom {
    device const uchar *weight;
    device const uchar *let_through;
};

// The rows of a threadgroup or SIMD group, from output `first` on, as F or Spans<F> has them; with FC_GATE the second half are
// those of what is let through. Rows beyond the end repeat the last one and are not stored.
template <typename R, uint ROWS>
inline void take_normed_rows(
    NormedFrom from, NormedLayout layout, uint first, thread typename R::Row (&rows)[ROWS]
) {
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const bool is_let_through = GATE != 0 && r >= ROWS / 2;
        device const uchar *weight = is_let_through ? from.let_through : from.weight;
        const uint row = min(first + (is_let_through ? r - ROWS / 2 : r), layout.weight.n_rows - 1);
        rows[r] = R::row(weight, is_let_through ? layout.let_through : layout.weight, row);
    }
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

    // Outputs of a weight that the threadgroup computes.
    const uint n_outputs = GATE != 0 ? ROWS / 2 : ROWS;
    const NormedWeight of = normed_weight(params, group, n_outputs);
    device const uchar *weight = of.index == 0 ? weight_0 : of.index == 1 ? weight_1 : weight_2;
    device float *y = of.index == 0 ? y_0 : of.index == 1 ? y_1 : y_2;
    const uint first = of.group * n_outputs;
    const NormedLayout layout = normed_layout(params, of);
    typename Spans<F>::Row rows[ROWS];
    typename F::Row plain[ROWS];
    take_normed_rows<Spans<F>, ROWS>({ weight, weight_1 }, layout, first, rows);
    take_normed_rows<F, ROWS>({ weight, weight_1 }, layout, first, plain);

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
    if (thread_index < n_outputs && first + thread_index < of.n) {
        const float squares = sum_of_shares<SUMS>(shares, ROWS, n_simd_groups);
        const float inverse = inverse_rms(squares, params.K, params.eps);
        const float product = sum_of_shares<SUMS>(shares, thread_index, n_simd_groups) * inverse;
        if (GATE == 0) {
            y[first + thread_index] = product;
        } else {
            const float let_through = sum_of_shares<SUMS>(shares, ROWS / 2 + thread_index, n_simd_groups) * inverse;
            y[first + thread_index] = apply_gate(product) * let_through;
        }
    }
}
