// The function constants of sampling. Names and indices are those of the registry in akunu-kernels.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant uint FC_PENALTY_WINDOW [[function_constant(50)]];  // unset: all tokens
