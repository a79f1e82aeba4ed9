// f16_to_f32: y[i] = x[i].
//
// Launch:  one thread an element, threadgroups of 256.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void f16_to_f32(
    device const half *x                  [[buffer(0)]],
    device float *y                       [[buffer(1)]],
    constant ElementwiseParams &params    [[buffer(2)]],
    uint i                                [[thread_position_in_grid]]
) {
    if (i < params.count) {
        y[i] = float(x[i]);
    }
}
