// Function constants of the RoPE and KV cache kernels.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant bool FC_FREQ_TABLE [[function_constant(40)]];
constant bool FC_HEAD_NORM [[function_constant(41)]];
constant bool FC_KEY_CENTRE [[function_constant(42)]];
constant uint FC_TURNED_DIM [[function_constant(43)]];
constant bool FC_TURN_FIRST [[function_constant(44)]];

constant bool HAS_FREQ_TABLE = is_function_constant_defined(FC_FREQ_TABLE) && FC_FREQ_TABLE;
constant bool HAS_HEAD_NORM = is_function_constant_defined(FC_HEAD_NORM) && FC_HEAD_NORM;
constant bool HAS_KEY_CENTRE = is_function_constant_defined(FC_KEY_CENTRE) && FC_KEY_CENTRE;
constant bool TURN_FIRST = is_function_constant_defined(FC_TURN_FIRST) && FC_TURN_FIRST;
constant bool HAS_TURNED_DIM = is_function_constant_defined(FC_TURNED_DIM);

// Elements of a head that turn, from its first on; the others stay as they are.
inline uint turned_dim(uint head_dim) { return HAS_TURNED_DIM ? FC_TURNED_DIM : head_dim; }
