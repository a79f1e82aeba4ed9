// logit_softcap_f32: x[i] = cap * tanh(x[i] / cap), in place.
//
// Launch:  one thread an element, 256 a threadgroup.
// Memory:  each element is read once and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void logit_softcap_f32(
    device float *logits                   [[buffer(0)]],
    constant LogitSoftcapParams &params    [[buffer(1)]],
    uint index                             [[thread_position_in_grid]]
) {
    if (index < params.count) {
        logits[index] = params.cap * precise::tanh(logits[index] / params.cap);
    }
}
