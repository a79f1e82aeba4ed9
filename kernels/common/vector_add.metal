// residual_add_f32: h[i] += x[i]
// vector_add_f32:   y[i] = a[i] + b[i]
//
// Launch:  one thread for four elements, threadgroups of 256.
// Memory:  each element is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/elementwise.h"

using namespace metal;

struct Add {
    template <typename T>
    static T apply(T a, T b) {
        return a + b;
    }
};

kernel void residual_add_f32(
    device float *h                     [[buffer(0)]],
    device const float *x               [[buffer(1)]],
    constant ElementwiseParams &params  [[buffer(2)]],
    uint index                          [[thread_position_in_grid]]
) {
    map_two<Add>(h, x, h, params.count, index);
}

kernel void vector_add_f32(
    device const float *a               [[buffer(0)]],
    device const float *b               [[buffer(1)]],
    device float *y                     [[buffer(2)]],
    constant ElementwiseParams &params  [[buffer(3)]],
    uint index                          [[thread_position_in_grid]]
) {
    map_two<Add>(a, b, y, params.count, index);
}
