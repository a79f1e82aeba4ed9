// half_rows_f32: y[r][i] = x[r][i] / factor[r], as halves, zeros behind the elements of a row.
//
// factor[r] is the largest power of two up to the largest |x[r][i]|, at least 2^-100: the division is exact before it is
// rounded to a half.
//
// Launch:  one threadgroup for each row.
// Memory:  a row is read twice, the second time from cache.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"

using namespace metal;

// The bits of 2^-100 and, as what two powers of two with product 1 add up to, of 2^127.
constant constexpr uint LEAST_FACTOR = 27u << 23;
constant constexpr uint INVERSE_SUM = 254u << 23;

kernel void half_rows_f32(
    device const float *x              [[buffer(0)]],  // (rows, cols)
    device half *y                     [[buffer(1)]],  // (rows, stride)
    device float *factor               [[buffer(2)]],  // (rows)
    constant HalfRowsParams &params    [[buffer(3)]],
    uint row                           [[threadgroup_position_in_grid]],
    uint thread_index                  [[thread_index_in_threadgroup]],
    uint n_threads                     [[threads_per_threadgroup]],
    uint simd_group                    [[simdgroup_index_in_threadgroup]],
    uint lane                          [[thread_index_in_simdgroup]],
    uint n_simd_groups                 [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];

    device const float *from = x + ulong(row) * params.cols;
    device half *to = y + ulong(row) * params.stride;
    const bool in_vectors = params.cols % 4 == 0 && params.stride % 4 == 0;
    float largest = 0.0f;
    if (in_vectors) {
        device const float4 *vectors = (device const float4 *)from;
        for (uint i = thread_index; i < params.cols / 4; i += n_threads) {
            const float4 v = abs(vectors[i]);
            largest = max(largest, max(max(v.x, v.y), max(v.z, v.w)));
        }
    } else {
        for (uint i = thread_index; i < params.cols; i += n_threads) {
            largest = max(largest, abs(from[i]));
        }
    }
    largest = threadgroup_max(largest, shared, SimdPlace{ simd_group, lane, n_simd_groups });
    const uint bits = max(as_type<uint>(largest) & 0x7f800000u, LEAST_FACTOR);
    const float inverse = as_type<float>(INVERSE_SUM - bits);
    if (thread_index == 0) {
        factor[row] = as_type<float>(bits);
    }
    if (in_vectors) {
        device const float4 *vectors = (device const float4 *)from;
        device half4 *halves = (device half4 *)to;
        for (uint i = thread_index; i < params.stride / 4; i += n_threads) {
            halves[i] = i < params.cols / 4 ? half4(vectors[i] * inverse) : half4(0.0h);
        }
    } else {
        for (uint i = thread_index; i < params.stride; i += n_threads) {
            to[i] = i < params.cols ? half(from[i] * inverse) : 0.0h;
        }
    }
}
