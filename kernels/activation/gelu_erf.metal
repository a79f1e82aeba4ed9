// gelu_erf_f32: x[i] = x[i] * (1 + erf(x[i] / sqrt(2))) / 2, in place
//
// The exact GELU of Whisper and BERT.
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

kernel void gelu_erf_f32(
    device float *x                     [[buffer(0)]],
    constant ElementwiseParams &params  [[buffer(1)]],
    uint index                          [[thread_position_in_grid]]
) {
    map_one(x, params.count, index, GeluErf{});
}
