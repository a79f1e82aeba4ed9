// gelu_erf_f32: x[i] = x[i] * (1 + erf(x[i] / sqrt(2))) / 2, in place
// gelu_f32: the same by the tanh form
// relu_squared_f32: x[i] = max(x[i], 0)^2, in place
//
// The exact GELU of Whisper and BERT, the tanh form of StarCoder 2, and the squared ReLU of Arcee and Nemotron.
//
// Launch:  one thread for four elements, threadgroups of 256.
// Memory:  x is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/elementwise.h"

using namespace metal;

struct GeluErf {
    template <typename T>
    T apply(T x) const {
        return act_gelu_erf(x);
    }
};

struct Gelu {
    template <typename T>
    T apply(T x) const {
        return act_gelu(x);
    }
};

struct ReluSquared {
    template <typename T>
    T apply(T x) const {
        const T positive = max(x, T(0.0f));
        return positive * positive;
    }
};

template <typename Function>
kernel void activate(
    device float *x                     [[buffer(0)]],
    constant ElementwiseParams &params  [[buffer(1)]],
    uint index                          [[thread_position_in_grid]]
) {
    map_one(x, params.count, index, Function{});
}

typedef decltype(activate<GeluErf>) activate_t;

template [[host_name("gelu_erf_f32")]] kernel activate_t activate<GeluErf>;
template [[host_name("gelu_f32")]] kernel activate_t activate<Gelu>;
template [[host_name("relu_squared_f32")]] kernel activate_t activate<ReluSquared>;
