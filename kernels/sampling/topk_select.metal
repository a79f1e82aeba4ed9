// topk_select_f32: the k largest values of each part of each row, with their tokens, in descending order
//
// Ties go to the first; NaN counts as -inf and comes last of all. Exact: a radix search finds the
// k-th largest key, where a key is the value's order in the upper bits and the place, inverted, in
// the lower 16, so that no two keys are equal. Places of a part that has fewer than k values hold
// -inf and the token 0xFFFFFFFF.
//
// A large vocabulary takes two launches: the parts first, then their winners as one part
// (indexed = 1). Winners of earlier parts come first, so that ties still go to the first token.
//
// Launch:  one threadgroup of 512 threads a part (x) of at most 8192 values, of each row (y).
// Memory:  each value is read once and kept as 16 keys a thread in registers. Threadgroup memory:
//          a histogram of 1 KB, the winning keys 2 KB, and the state of the search.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/reduce.h"

using namespace metal;

constant constexpr uint TOPK_THREADS = 512;
constant constexpr uint TOPK_PER_THREAD = 16;
constant constexpr uint TOPK_MAX = 256;
constant constexpr uint RADIX = 256;
constant constexpr uint NO_TOKEN = 0xFFFFFFFFu;
constant constexpr uint PLACE_MASK = 0xFFFFu;
constant constexpr uint KEY_DIGITS = 6;  // 8 bits each: 32 of the order, 16 of the place

static_assert(TOPK_THREADS * TOPK_PER_THREAD <= PLACE_MASK, "a place fits its bits");
static_assert(RADIX * 4 + TOPK_MAX * 8 + 128 + 16 <= 32768, "threadgroup memory");

// Unsigned integers in the order of the floats: -inf first, 0 and -0 equal, and NaN below all.
inline uint order_of(float value) {
    if (isnan(value)) {
        return 0;
    }
    const uint bits = value == 0.0f ? 0u : as_type<uint>(value);
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

inline float value_of(uint order) {
    if (order == 0) {
        return -INFINITY;
    }
    return as_type<float>((order >> 31) != 0 ? order & 0x7FFFFFFFu : ~order);
}

inline ulong key_of(uint order, uint place) {
    return (ulong(order) << 16) | ulong(PLACE_MASK - place);
}

// The search so far: keys of which all bits from `shift` on equal those of `prefix` are undecided,
// and `wanted` of them are to be kept besides all larger ones.
struct Search {
    ulong prefix;
    uint shift;
    uint wanted;
};

// The state that the threads of one radix step share.
struct Step {
    uint digit;   // the digit of the k-th largest key
    uint wanted;  // how many keys with that digit are to be kept
    uint exact;   // 1: all keys with that digit are
};

// Chooses the digit whose bin holds the wanted-th largest key. Thread d < RADIX stands for the digit
// RADIX - 1 - d, so that a prefix sum counts the keys with a larger or equal digit.
inline void choose_digit(
    uint thread_index, SimdPlace at, uint wanted, uint in_bin,
    threadgroup uint *group_sums, threadgroup Step *step
) {
    const uint before_in_group = simd_prefix_exclusive_sum(in_bin);
    if (at.lane == SIMD_WIDTH - 1) {
        group_sums[at.group] = before_in_group + in_bin;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint before = before_in_group;
    for (uint g = 0; g < at.group; ++g) {
        before += group_sums[g];
    }
    if (before < wanted && wanted <= before + in_bin) {
        step->digit = RADIX - 1 - thread_index;
        step->wanted = wanted - before;
        step->exact = wanted == before + in_bin ? 1 : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void topk_select_f32(
    device const float *values   [[buffer(0)]],
    device const uint *ids       [[buffer(1)]],
    device float *top_values     [[buffer(2)]],
    device uint *top_ids         [[buffer(3)]],
    constant TopKParams &params  [[buffer(4)]],
    uint2 place_in_grid          [[threadgroup_position_in_grid]],
    uint thread_index            [[thread_index_in_threadgroup]],
    uint simd_group              [[simdgroup_index_in_threadgroup]],
    uint lane                    [[thread_index_in_simdgroup]],
    uint n_simd_groups           [[simdgroups_per_threadgroup]]
) {
    threadgroup atomic_uint histogram[RADIX];
    threadgroup ulong winners[TOPK_MAX];
    threadgroup uint group_sums[MAX_SIMD_GROUPS];
    threadgroup atomic_uint n_winners;
    threadgroup Step found;

    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const uint begin = place_in_grid.x * params.part;
    const ulong row = ulong(place_in_grid.y) * params.count;
    const uint n_values = min(params.part, params.count - begin);
    const uint k = min(params.k, TOPK_MAX);

    uint orders[TOPK_PER_THREAD];
    for (uint i = 0; i < TOPK_PER_THREAD; ++i) {
        const uint place = i * TOPK_THREADS + thread_index;
        orders[i] = place < n_values ? order_of(values[row + begin + place]) : 0;
    }

    // Radix search from the top digit down, until the undecided keys are all wanted.
    Search search = { 0, 8 * KEY_DIGITS, min(k, n_values) };
    bool exact = k >= n_values;
    while (!exact) {
        if (thread_index < RADIX) {
            atomic_store_explicit(&histogram[thread_index], 0, memory_order_relaxed);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < TOPK_PER_THREAD; ++i) {
            const uint place = i * TOPK_THREADS + thread_index;
            const ulong key = key_of(orders[i], min(place, PLACE_MASK));
            if (place < n_values && (key >> search.shift) == search.prefix) {
                const uint digit = uint(key >> (search.shift - 8)) % RADIX;
                atomic_fetch_add_explicit(&histogram[digit], 1, memory_order_relaxed);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint in_bin =
            thread_index < RADIX
                ? atomic_load_explicit(&histogram[RADIX - 1 - thread_index], memory_order_relaxed)
                : 0;
        choose_digit(thread_index, at, search.wanted, in_bin, group_sums, &found);
        search.prefix = (search.prefix << 8) | found.digit;
        search.shift -= 8;
        search.wanted = found.wanted;
        exact = found.exact != 0;
    }

    // Gather the winners in any order, then rank each by counting the larger ones.
    if (thread_index == 0) {
        atomic_store_explicit(&n_winners, 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < TOPK_PER_THREAD; ++i) {
        const uint place = i * TOPK_THREADS + thread_index;
        const ulong key = key_of(orders[i], min(place, PLACE_MASK));
        if (place < n_values && (key >> search.shift) >= search.prefix) {
            const uint slot = atomic_fetch_add_explicit(&n_winners, 1, memory_order_relaxed);
            winners[min(slot, TOPK_MAX - 1)] = key;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const uint n = min(k, n_values);
    const uint n_parts = (params.count + params.part - 1) / params.part;
    const uint out = (place_in_grid.y * n_parts + place_in_grid.x) * k;
    if (thread_index < n) {
        const ulong key = winners[thread_index];
        uint rank = 0;
        for (uint other = 0; other < n; ++other) {
            rank += winners[other] > key ? 1 : 0;
        }
        const uint place = begin + PLACE_MASK - (uint(key) & PLACE_MASK);
        top_values[out + rank] = value_of(uint(key >> 16));
        top_ids[out + rank] = params.indexed != 0 ? ids[row + place] : place;
    } else if (thread_index < k) {
        top_values[out + thread_index] = -INFINITY;
        top_ids[out + thread_index] = NO_TOKEN;
    }
}
