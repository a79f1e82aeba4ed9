// sort_experts_u32: the results of all rows' experts in the order of their experts, and in tiles of one expert each
//
//     order = the numbers of the results, by expert, those of one expert in the order of the rows
//     tiles = expert, first place in the order and count of `tile` results of an expert or, of its last tile, fewer
//
// A result is one of the n_used experts of a row. Expert e, whose results begin at place f, has the tiles from f / tile + e on: those
// of the expert before end there at the latest. What is left between the two are tiles of no results.
//
// Launch:  a threadgroup for each expert, of which a thread takes results that follow each other.
// Memory:  every threadgroup reads all ids twice, which come from cache.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/expert_tile.h"
#include "include/reduce.h"

using namespace metal;

// The sum of the values of all threads before this one, and of all threads. `shared` has room for 32 numbers, and cannot be used
// again at once.
inline uint2 sum_before(uint value, threadgroup uint *shared, SimdPlace at) {
    const uint in_simd = simd_prefix_exclusive_sum(value);
    if (at.lane == SIMD_WIDTH - 1) {
        shared[at.group] = in_simd + value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint of_group = at.lane < at.n_groups ? shared[at.lane] : 0;
    return uint2(in_simd + simd_sum(at.lane < at.group ? of_group : 0), simd_sum(of_group));
}

kernel void sort_experts_u32(
    device const uint *ids                [[buffer(0)]],  // (n_results)
    device uint *order                    [[buffer(1)]],  // (n_results)
    device uint *tiles                    [[buffer(2)]],  // (n_results / tile + n_experts, 3)
    constant SortExpertsParams &params    [[buffer(3)]],
    uint expert                           [[threadgroup_position_in_grid]],
    uint thread_index                     [[thread_index_in_threadgroup]],
    uint n_threads                        [[threads_per_threadgroup]],
    uint simd_group                       [[simdgroup_index_in_threadgroup]],
    uint lane                             [[thread_index_in_simdgroup]],
    uint n_simd_groups                    [[simdgroups_per_threadgroup]]
) {
    threadgroup uint shared[2][MAX_SIMD_GROUPS];
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const uint share = (params.n_results + n_threads - 1) / n_threads;
    const uint begin = min(thread_index * share, params.n_results);
    const uint end = min(begin + share, params.n_results);
    uint n_own = 0;
    uint n_smaller = 0;
    for (uint i = begin; i < end; i++) {
        const uint id = min(ids[i], params.n_experts - 1);
        n_own += id == expert ? 1 : 0;
        n_smaller += id < expert ? 1 : 0;
    }
    const uint2 own = sum_before(n_own, shared[0], at);
    const uint first = sum_before(n_smaller, shared[1], at).y;

    uint place = first + own.x;
    for (uint i = begin; i < end; i++) {
        if (min(ids[i], params.n_experts - 1) == expert) {
            order[place++] = i;
        }
    }
    const uint first_tile = first / params.tile + expert;
    const uint end_tile = (first + own.y) / params.tile + expert + 1;
    for (uint t = first_tile + thread_index; t < end_tile; t += n_threads) {
        const uint done = min((t - first_tile) * params.tile, own.y);
        device uint *to = tiles + t * TILE_WORDS;
        to[0] = expert;
        to[1] = first + done;
        to[2] = min(own.y - done, params.tile);
    }
}
