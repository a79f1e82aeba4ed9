// halves_f32: y[i] = x[i] as a half, rounded to the nearest
//
// What is written once and read by every token: the keys and values of an encoder.
//
// Launch:  one thread for four elements, threadgroups of 256.
// Memory:  x is read once, y is written once.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void halves_f32(
    device const float *x               [[buffer(0)]],
    device half *y                      [[buffer(1)]],
    constant ElementwiseParams &params  [[buffer(2)]],
    uint index                          [[thread_position_in_grid]]
) {
    const uint first = 4 * index;
    if (first + 4 <= params.count) {
        *(device half4 *)(y + first) = half4(*(device const float4 *)(x + first));
    } else {
        for (uint i = first; i < params.count; ++i) {
            y[i] = half(x[i]);
        }
    }
}
