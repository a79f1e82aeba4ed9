// flash_attention_join_f32: the attention of a row from the parts that flash_attention_decode_split_f16 has left.
//
//     O[row][head] = Σ_p 2^(weights[p]) parts[p] / Σ_p 2^(weights[p])
//
// and zeros where no part has a key.
//
// Launch:  one threadgroup of up to MAX_THREADS threads for each row (x) and head (y): a thread for each vector of four
//          elements and every n-th part.
// Memory:  every part that has a key is read once; the factors of up to MAX_PARTS parts and the sums of the threads are in
//          threadgroup memory.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention.h"
#include "include/reduce.h"

using namespace metal;

constant constexpr uint MAX_PARTS = 64;
constant constexpr uint MAX_THREADS = 256;

kernel void flash_attention_join_f32(
    device const float *parts           [[buffer(0)]],  // (n_rows, n_heads, n_parts, head_dim)
    device const float *weights         [[buffer(1)]],  // (n_rows, n_heads, n_parts)
    device float *O                     [[buffer(2)]],
    constant AttentionParams &params    [[buffer(3)]],
    uint2 place                         [[threadgroup_position_in_grid]],
    uint2 n_threads                     [[threads_per_threadgroup]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]]
) {
    threadgroup float factors[MAX_PARTS];
    threadgroup float4 sums[MAX_THREADS];

    const uint n_parts = params.n_parts;
    const ulong first = (ulong(place.x) * params.n_heads + place.y) * n_parts;
    if (simd_group == 0) {
        const float low = lane < n_parts ? weights[first + lane] : -INFINITY;
        const float high = lane + SIMD_WIDTH < n_parts ? weights[first + lane + SIMD_WIDTH] : -INFINITY;
        // Where no part has a key, all factors become zero.
        const float peak = max(simd_max(max(low, high)), LOWEST_SCORE);
        const float a = fast::exp2(low - peak);
        const float b = fast::exp2(high - peak);
        const float inverse = inverse_sum(simd_sum(a + b));
        factors[lane] = a * inverse;
        factors[lane + SIMD_WIDTH] = b * inverse;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint head_dim = head_dim_of(params);
    const uint n_vectors = head_dim / 4;
    const uint n_teams = n_threads.x / n_vectors;
    const uint vector = thread_index % n_vectors;
    const uint team = thread_index / n_vectors;
    device const float4 *from = (device const float4 *)(parts + first * head_dim) + vector;
    float4 sum = float4(0.0f);
    if (team < n_teams) {
#pragma unroll 4
        for (uint p = team; p < n_parts; p += n_teams) {
            if (factors[p] > 0.0f) {
                sum += factors[p] * from[p * n_vectors];
            }
        }
    }
    sums[thread_index] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (team == 0) {
        for (uint t = 1; t < n_teams; t++) {
            sum += sums[t * n_vectors + vector];
        }
        device float *out = O + query_offset(params, params.first_row + place.x, place.y);
        *(device packed_float4 *)(out + 4 * vector) = sum;
    }
}
