// Products of a row with the matrices of the experts that it uses, weights (n_experts, N, K) in any format.
//
// Launch:  grid (ceil(N / (outputs of a SIMD group * SIMD groups)), n_rows * n_used), any number of SIMD groups.
// Memory:  the weights of an expert are read once for each row that uses it; sums in registers.
#pragma once

#include "include/activation.h"
#include "include/dot_rows.h"

constant constexpr uint HAS_BIASES = 1;
constant constexpr uint HAS_SCALES = 2;

constant constexpr uint SILU_GATE = 0;
constant constexpr uint GELU_GATE = 1;
constant constexpr uint GELU_ERF_GATE = 2;
constant constexpr uint SIGMOID_GATE = 4;

inline float expert_activation(float gate, float up, uint activation) {
    switch (activation) {
        case SILU_GATE: return act_silu(gate) * up;
        case GELU_GATE: return act_gelu(gate) * up;
        case GELU_ERF_GATE: return act_gelu_erf(gate) * up;
        case SIGMOID_GATE: return act_sigmoid(gate) * up;
        default: return act_swiglu_oai(gate, up);
    }
}

// The first row of an expert's matrix, and one behind its last.
struct ExpertRows {
    uint first;
    uint end;
};

inline ExpertRows expert_rows(constant ExpertParams &params, uint expert) {
    return { expert * params.stride, expert * params.stride + params.N };
}

// Where the rows of the first weight lie, up to `end`, and those of the second.
inline WeightLayout first_layout(constant ExpertParams &params, uint end) {
    return { end, params.K, params.group_size, params.scale_type, params.packed_0, params.scales_0, params.biases_0 };
}
inline WeightLayout second_layout(constant ExpertParams &params, uint end) {
    return { end, params.K, params.group_size, params.scale_type, params.packed_1, params.scales_1, params.biases_1 };
}

// A product with its scale and its bias; `n` is the output.
inline float finished(
    float product, constant ExpertParams &params, uint expert, uint n, device const float *bias, device const float *scale
) {
    product *= (params.flags & HAS_SCALES) != 0 ? scale[expert] : 1.0f;
    return (params.flags & HAS_BIASES) != 0 ? product + bias[ulong(expert) * params.N + n] : product;
}
