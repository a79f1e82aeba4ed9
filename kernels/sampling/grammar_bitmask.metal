// grammar_bitmask_f32: logits[i] = -inf where bit i % 32 of mask[i / 32] is 0, in place
//
// Launch:  one thread a logit, threadgroups of 256.
// Memory:  a word of the mask is read by the 32 threads of a SIMD group; only logits that change are
//          touched.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void grammar_bitmask_f32(
    device float *logits                [[buffer(0)]],
    device const uint *mask             [[buffer(1)]],
    constant ElementwiseParams &params  [[buffer(2)]],
    uint index                          [[thread_position_in_grid]]
) {
    if (index < params.count && ((mask[index / 32] >> (index % 32)) & 1u) == 0) {
        logits[index] = -INFINITY;
    }
}
