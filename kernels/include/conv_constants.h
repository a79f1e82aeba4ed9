// The function constants of the audio kernels. Names and indices are those of the registry in
// akunu-kernels.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant bool FC_GELU [[function_constant(60)]];        // unset: no activation
constant bool FC_TIME_MAJOR [[function_constant(61)]];  // unset: channel-major output

inline bool wants_gelu() {
    return is_function_constant_defined(FC_GELU) ? FC_GELU : false;
}

inline bool wants_time_major() {
    return is_function_constant_defined(FC_TIME_MAJOR) ? FC_TIME_MAJOR : false;
}
