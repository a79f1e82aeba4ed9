// Function constants of all kernels that read or write keys and values.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant bool FC_KV_Q8 [[function_constant(50)]];

constant bool KV_Q8 = is_function_constant_defined(FC_KV_Q8) && FC_KV_Q8;
