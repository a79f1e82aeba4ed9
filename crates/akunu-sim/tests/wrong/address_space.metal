// A pointer to device memory where one to threadgroup memory is asked for: not MSL.
#include <metal_stdlib>
using namespace metal;

inline float first(threadgroup const float *tile) {
    return tile[0];
}

kernel void wrong_space(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                        uint t [[thread_position_in_grid]]) {
    y[t] = first(x);
}
