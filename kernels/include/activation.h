// Activation functions of float and float4.
#pragma once

#include <metal_stdlib>

using namespace metal;

// x * sigmoid(x)
template <typename T>
inline T act_silu(T x) {
    return x / (1.0f + precise::exp(-x));
}

// 1 / (1 + exp(-x))
template <typename T>
inline T act_sigmoid(T x) {
    return 1.0f / (1.0f + precise::exp(-x));
}

// log(1 + exp(x)), where log(1 + u) = u for small u must not be rounded with 1 + u.
inline float softplus(float x) {
    const float u = precise::exp(-abs(x));
    const float rest = u < 0.01f ? u * (1.0f - u * (0.5f - u * (1.0f / 3.0f - u * 0.25f))) : precise::log(1.0f + u);
    return max(x, 0.0f) + rest;
}

// The tanh form of GELU, as Gemma has it: 0.5 * x * (1 + tanh(u)) with
// u = sqrt(2 / pi) * (x + 0.044715 * x^3), written as x * sigmoid(2 * u): the same, but nothing
// cancels where tanh is near -1.
template <typename T>
inline T act_gelu(T x) {
    return x / (1.0f + precise::exp(-1.5957691216f * x * (1.0f + 0.044715f * x * x)));
}

// erf(x) by formula 7.1.26 of Abramowitz and Stegun: off by at most 1.5e-7, 5e-7 with the rounding
// of float.
template <typename T>
inline T erf_approx(T x) {
    const T a = abs(x);
    const T t = 1.0f / (1.0f + 0.3275911f * a);
    const T poly =
        t * (0.254829592f +
             t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    return copysign(1.0f - poly * precise::exp(-a * a), x);
}

// The exact form of GELU, x * Phi(x), as Whisper and BERT have it.
template <typename T>
inline T act_gelu_erf(T x) {
    return 0.5f * x * (1.0f + erf_approx(0.7071067812f * x));
}

// The gate of gpt-oss: a SiLU of slope 1.702, and 1 added to what it lets through, both limited to 7.
template <typename T>
inline T act_swiglu_oai(T gate, T up) {
    const T limited = min(gate, T(7.0f));
    return limited / (1.0f + precise::exp(-1.702f * limited)) * (clamp(up, T(-7.0f), T(7.0f)) + 1.0f);
}
