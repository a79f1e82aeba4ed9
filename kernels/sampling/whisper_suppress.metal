// whisper_suppress_f32: logits[id] = -inf for each id of the list, in place
//
// Launch:  one thread a listed token, threadgroups of 256.
// Memory:  the list is read once; an id listed twice is written twice with the same value.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void whisper_suppress_f32(
    device float *logits                  [[buffer(0)]],
    device const uint *ids                [[buffer(1)]],
    constant TokenSuppressParams &params  [[buffer(2)]],
    uint index                            [[thread_position_in_grid]]
) {
    if (index < params.n_tokens && ids[index] < params.vocab_size) {
        logits[ids[index]] = -INFINITY;
    }
}
