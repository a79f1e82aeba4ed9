// A pointer to constant memory where one to device memory is asked for: not MSL.
#include <metal_stdlib>
using namespace metal;

inline float first(device const float *values) {
    return values[0];
}

kernel void wrong_space(constant float *x [[buffer(0)]], device float *y [[buffer(1)]],
                        uint t [[thread_position_in_grid]]) {
    y[t] = first(x);
}
