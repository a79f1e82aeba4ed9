// Function constants of the attention kernels. A constant that is not set is taken from the params, or
// switches its feature off.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant uint FC_HEAD_DIM [[function_constant(0)]];
constant uint FC_WINDOW [[function_constant(2)]];
constant float FC_SOFTCAP [[function_constant(3)]];
constant uint FC_QUERY_ROWS [[function_constant(5)]];

constant bool HAS_HEAD_DIM = is_function_constant_defined(FC_HEAD_DIM);
constant uint WINDOW = is_function_constant_defined(FC_WINDOW) ? FC_WINDOW : 0;
constant float SOFTCAP = is_function_constant_defined(FC_SOFTCAP) ? FC_SOFTCAP : 0.0f;
constant uint QUERY_ROWS = is_function_constant_defined(FC_QUERY_ROWS) ? FC_QUERY_ROWS : 8;
