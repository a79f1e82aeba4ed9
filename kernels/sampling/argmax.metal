// argmax_f32:         the token of the largest value of each row; ties go to the first, NaN never wins
// argmax_partial_f32: the largest value of each part of each row, with its token
//
// Row i of the values belongs to row outputs[i] of the row table; an idle row gets token 0 and no history.
//
// A small vocabulary takes argmax_f32 alone. A large one is cut into parts, one threadgroup each,
// and argmax_f32 then chooses among the parts' winners (indexed = 1).
//
// Launch:  argmax_f32 one threadgroup of 1024 threads a row; argmax_partial_f32 one of 256 a part (x) of
//          a row (y).
// Memory:  each value is read once; 256 bytes of threadgroup memory for the SIMD groups' winners.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/choice.h"
#include "include/reduce.h"

using namespace metal;

// Values that a thread asks for at once.
constant constexpr uint AT_ONCE = 4;

// The best of values[begin .. end] that this thread looks at.
inline Candidate scan(
    device const float *values, uint begin, uint end, uint thread_index, uint n_threads
) {
    Candidate best = no_candidate();
    for (uint first = begin + thread_index; first < end; first += AT_ONCE * n_threads) {
        float held[AT_ONCE];
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++) {
            const uint place = first + i * n_threads;
            held[i] = place < end ? values[place] : NAN;
        }
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++) {
            best = better(best, held[i], first + i * n_threads);
        }
    }
    return best;
}

kernel void argmax_partial_f32(
    device const float *logits            [[buffer(0)]],
    device float *values                  [[buffer(1)]],
    device uint *ids                      [[buffer(2)]],
    constant ArgmaxPartialParams &params  [[buffer(3)]],
    uint2 place                           [[threadgroup_position_in_grid]],
    uint2 n_threads                       [[threads_per_threadgroup]],
    uint thread_index                     [[thread_index_in_threadgroup]],
    uint simd_group                       [[simdgroup_index_in_threadgroup]],
    uint lane                             [[thread_index_in_simdgroup]],
    uint n_simd_groups                    [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared_values[MAX_SIMD_GROUPS];
    threadgroup uint shared_places[MAX_SIMD_GROUPS];

    const uint begin = place.x * params.part;
    const uint end = min(begin + params.part, params.count);
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    device const float *row = logits + ulong(place.y) * params.count;
    const Candidate mine = scan(row, begin, end, thread_index, n_threads.x);
    const Candidate best = threadgroup_best(mine, shared_values, shared_places, at);
    if (thread_index == 0) {
        const uint n_parts = (params.count + params.part - 1) / params.part;
        const uint out = place.y * n_parts + place.x;
        values[out] = best.value;
        ids[out] = best.place == NO_CANDIDATE ? begin : best.place;
    }
}

kernel void argmax_f32(
    device const float *values     [[buffer(0)]],
    device const uint *ids         [[buffer(1)]],
    device uint *tokens            [[buffer(2)]],
    device uint *history           [[buffer(3)]],
    constant ArgmaxParams &params  [[buffer(4)]],
    device const uint *outputs     [[buffer(5)]],
    device const Row *rows         [[buffer(6)]],
    uint output                    [[threadgroup_position_in_grid]],
    uint n_threads                 [[threads_per_threadgroup]],
    uint thread_index              [[thread_index_in_threadgroup]],
    uint simd_group                [[simdgroup_index_in_threadgroup]],
    uint lane                      [[thread_index_in_simdgroup]],
    uint n_simd_groups             [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared_values[MAX_SIMD_GROUPS];
    threadgroup uint shared_places[MAX_SIMD_GROUPS];

    device const Row &row = rows[outputs[output]];
    if (!is_active(row)) {
        if (thread_index == 0) {
            tokens[output] = 0;
        }
        return;
    }
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const ulong first = ulong(output) * params.count;
    const Candidate mine = scan(values + first, 0, params.count, thread_index, n_threads);
    const Candidate best = threadgroup_best(mine, shared_values, shared_places, at);
    if (thread_index == 0) {
        const uint place = best.place == NO_CANDIDATE ? 0 : best.place;
        const uint chosen = params.indexed != 0 ? ids[first + place] : place;
        store_token(chosen, tokens + output, history, row, params.history_stride);
    }
}
