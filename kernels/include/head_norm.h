// RMSNorm of one head whose elements the threads of a threadgroup hold in pairs.
#pragma once

#include <metal_stdlib>

#include "include/reduce.h"

using namespace metal;

// The pair's values divided by the root mean square of the head. Threads without a pair pass zeros.
// Every thread of the threadgroup must call this.
inline float2 head_norm(
    float2 value, uint head_dim, float eps, threadgroup float *shared, SimdPlace place
) {
    const float square = threadgroup_sum(dot(value, value), shared, place);
    return value / sqrt(square / float(head_dim) + eps);
}
