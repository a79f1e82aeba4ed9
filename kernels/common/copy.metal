// copy_f32: y[i] = x[i]
//
// Launch:  one thread for four elements, threadgroups of 256.
// Memory:  each element is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/elementwise.h"

using namespace metal;

struct First {
    template <typename T>
    static T apply(T a, T) {
        return a;
    }
};

kernel void copy_f32(
    device const float *x               [[buffer(0)]],
    device float *y                     [[buffer(1)]],
    constant ElementwiseParams &params  [[buffer(2)]],
    uint index                          [[thread_position_in_grid]]
) {
    map_two<First>(x, x, y, params.count, index);
}
