// Where a kernel begins to read what the kernels before it have written.
#pragma once

#include <metal_stdlib>

using namespace metal;

// Up to here a kernel has read nothing but what no kernel of its step writes: weights, rows, pages of earlier steps. Where a GPU
// begins a kernel while the one before it ends, that one must have ended here. On others it is a barrier that costs nothing and
// orders no memory.
inline void inputs_are_ready() { simdgroup_barrier(mem_flags::mem_none); }
