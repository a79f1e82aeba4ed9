// silu_gate_f32: y[i] = silu(gate[i]) * up[i]
// gelu_gate_f32: y[i] = gelu(gate[i]) * up[i], the tanh form
// gelu_erf_gate_f32: the same with the exact GELU
// sigmoid_gate_f32: y[i] = sigmoid(gate[i]) * up[i]
// swiglu_oai_gate_f32: y[i] = g * sigmoid(1.702 * g) * (u + 1), g = min(gate[i], 7), u = up[i] clamped to 7
//
// The gated feed-forward of Llama and Qwen (SiLU), of Gemma (GELU), of ModernBERT (exact GELU) and of gpt-oss, between its matrices;
// and the gate of attention (sigmoid).
//
// Launch:  one thread for four elements, threadgroups of 256.
// Memory:  gate and up are read once, y is written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/elementwise.h"

using namespace metal;

struct SiluGate {
    template <typename T>
    static T apply(T gate, T up) {
        return act_silu(gate) * up;
    }
};

struct GeluGate {
    template <typename T>
    static T apply(T gate, T up) {
        return act_gelu(gate) * up;
    }
};

struct GeluErfGate {
    template <typename T>
    static T apply(T gate, T up) {
        return act_gelu_erf(gate) * up;
    }
};

struct SigmoidGate {
    template <typename T>
    static T apply(T gate, T up) {
        return act_sigmoid(gate) * up;
    }
};

struct SwigluOaiGate {
    template <typename T>
    static T apply(T gate, T up) {
        return act_swiglu_oai(gate, up);
    }
};

template <typename Gate>
kernel void gated(
    device const float *gate            [[buffer(0)]],
    device const float *up              [[buffer(1)]],
    device float *y                     [[buffer(2)]],
    constant ElementwiseParams &params  [[buffer(3)]],
    uint index                          [[thread_position_in_grid]]
) {
    map_two<Gate>(gate, up, y, params.count, index);
}

typedef decltype(gated<SiluGate>) gated_t;

template [[host_name("silu_gate_f32")]] kernel gated_t gated<SiluGate>;
template [[host_name("gelu_gate_f32")]] kernel gated_t gated<GeluGate>;
template [[host_name("gelu_erf_gate_f32")]] kernel gated_t gated<GeluErfGate>;
template [[host_name("sigmoid_gate_f32")]] kernel gated_t gated<SigmoidGate>;
template [[host_name("swiglu_oai_gate_f32")]] kernel gated_t gated<SwigluOaiGate>;
