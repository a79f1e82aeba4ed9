// Sums and maxima over a threadgroup.
//
// Two phases: each SIMD group reduces by itself, its first lane leaves the result in threadgroup
// memory, and after a barrier every SIMD group reduces those results. Every thread of the
// threadgroup must call these, and gets the result. `shared` has room for 32 floats; a second
// barrier lets it be used again at once.
#pragma once

#include <metal_stdlib>

using namespace metal;

constant constexpr uint SIMD_WIDTH = 32;
constant constexpr uint MAX_SIMD_GROUPS = 32;

// Where a thread stands in its threadgroup.
struct SimdPlace {
    uint group;     // which SIMD group
    uint lane;      // which lane of it
    uint n_groups;  // how many SIMD groups there are
};

inline float threadgroup_sum(float value, threadgroup float *shared, SimdPlace at) {
    const float partial = simd_sum(value);
    if (at.lane == 0) {
        shared[at.group] = partial;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float total = simd_sum(at.lane < at.n_groups ? shared[at.lane] : 0.0f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return total;
}

inline float threadgroup_max(float value, threadgroup float *shared, SimdPlace at) {
    const float partial = simd_max(value);
    if (at.lane == 0) {
        shared[at.group] = partial;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float total = simd_max(at.lane < at.n_groups ? shared[at.lane] : -INFINITY);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return total;
}

// The sum of one value and the largest of another, which is not negative, with one barrier: `shared`, with room for 32 pairs, cannot
// be used again at once. Without HAS_SUM the sum is 0.
template <bool HAS_SUM>
inline float2 threadgroup_sum_and_max(float value, float other, threadgroup float2 *shared, SimdPlace at) {
    const float2 partial = float2(HAS_SUM ? simd_sum(value) : 0.0f, simd_max(other));
    if (at.lane == 0) {
        shared[at.group] = partial;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float2 mine = at.lane < at.n_groups ? shared[at.lane] : float2(0.0f);
    return float2(HAS_SUM ? simd_sum(mine.x) : 0.0f, simd_max(mine.y));
}
