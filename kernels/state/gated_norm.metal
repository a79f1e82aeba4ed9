// gated_norm_f32: to = norm(x) * weight * silu(gate), or norm(x * silu(gate)) * weight, of each piece of a row,
// with norm(x) = x / sqrt(mean(x^2) + eps)
//
// Launch:  one threadgroup a piece, a thread for about four elements, in whole SIMD groups.
// Memory:  x and gate are read twice (the second time from cache), to is written once; 128 bytes of threadgroup
//          memory for the sum.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/reduce.h"
#include "include/row.h"

using namespace metal;

kernel void gated_norm_f32(
    device const float *x                [[buffer(0)]],
    device const float *gate             [[buffer(1)]],
    device const float *weight           [[buffer(2)]],
    device float *to                     [[buffer(3)]],
    constant GatedNormParams &params     [[buffer(4)]],
    uint2 place                          [[threadgroup_position_in_grid]],
    uint thread_index                    [[thread_index_in_threadgroup]],
    uint2 n_threads                      [[threads_per_threadgroup]],
    uint simd_group                      [[simdgroup_index_in_threadgroup]],
    uint lane                            [[thread_index_in_simdgroup]],
    uint n_simd_groups                   [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];

    const uint width = params.width;
    const uint piece = place.x;
    const ulong first = (ulong(place.y) * params.pieces + piece) * width;
    device const float *own_x = x + first;
    device const float *own_gate = gate + ulong(place.y) * params.gate_stride + ulong(piece) * width;
    device const float *own_weight = params.own_weights != 0 ? weight + ulong(piece) * width : weight;
    const bool gate_first = params.gate_first != 0;

    float square = 0.0f;
    for (uint i = thread_index; i < width; i += n_threads.x) {
        const float value = gate_first ? own_x[i] * act_silu(own_gate[i]) : own_x[i];
        square += value * value;
    }
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const float inverse = inverse_rms(threadgroup_sum(square, shared, at), width, params.eps);
    for (uint i = thread_index; i < width; i += n_threads.x) {
        to[first + i] = own_x[i] * act_silu(own_gate[i]) * inverse * own_weight[i];
    }
}
