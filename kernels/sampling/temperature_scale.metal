// temperature_scale_f32: x[i] *= inv_temperature, in place
//
// Logits before sampling; also the scale of Gemma's embeddings.
//
// Launch:  one thread for four elements, threadgroups of 256.
// Memory:  x is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/elementwise.h"

using namespace metal;

struct Scale {
    float factor;

    template <typename T>
    T apply(T x) const {
        return x * factor;
    }
};

kernel void temperature_scale_f32(
    device float *x                          [[buffer(0)]],
    constant TemperatureScaleParams &params  [[buffer(1)]],
    uint index                               [[thread_position_in_grid]]
) {
    map_one(x, params.count, index, Scale{params.inv_temperature});
}
