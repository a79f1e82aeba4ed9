// argmax_f32:         the token of the largest value; ties go to the first, NaN never wins
// argmax_partial_f32: the largest value of each part, with its token
//
// A small vocabulary takes argmax_f32 alone. A large one is cut into parts, one threadgroup each,
// and argmax_f32 then chooses among the parts' winners (indexed = 1).
//
// Launch:  argmax_f32 one threadgroup of 1024 threads; argmax_partial_f32 one of 256 a part.
// Memory:  each value is read once; 256 bytes of threadgroup memory for the SIMD groups' winners.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/choice.h"
#include "include/reduce.h"

using namespace metal;

// The best of values[begin .. end] that this thread looks at.
inline Candidate scan(
    device const float *values, uint begin, uint end, uint thread_index, uint n_threads
) {
    Candidate best = no_candidate();
    for (uint i = begin + thread_index; i < end; i += n_threads) {
        best = better(best, values[i], i);
    }
    return best;
}

kernel void argmax_partial_f32(
    device const float *logits            [[buffer(0)]],
    device float *values                  [[buffer(1)]],
    device uint *ids                      [[buffer(2)]],
    constant ArgmaxPartialParams &params  [[buffer(3)]],
    uint part                             [[threadgroup_position_in_grid]],
    uint thread_index                     [[thread_index_in_threadgroup]],
    uint n_threads                        [[threads_per_threadgroup]],
    uint simd_group                       [[simdgroup_index_in_threadgroup]],
    uint lane                             [[thread_index_in_simdgroup]],
    uint n_simd_groups                    [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared_values[MAX_SIMD_GROUPS];
    threadgroup uint shared_places[MAX_SIMD_GROUPS];

    const uint begin = part * params.part;
    const uint end = min(begin + params.part, params.count);
    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const Candidate mine = scan(logits, begin, end, thread_index, n_threads);
    const Candidate best = threadgroup_best(mine, shared_values, shared_places, at);
    if (thread_index == 0) {
        values[part] = best.value;
        ids[part] = best.place == NO_CANDIDATE ? begin : best.place;
    }
}

kernel void argmax_f32(
    device const float *values     [[buffer(0)]],
    device const uint *ids         [[buffer(1)]],
    device uint *token             [[buffer(2)]],
    device uint *history           [[buffer(3)]],
    constant ArgmaxParams &params  [[buffer(4)]],
    uint thread_index              [[thread_index_in_threadgroup]],
    uint n_threads                 [[threads_per_threadgroup]],
    uint simd_group                [[simdgroup_index_in_threadgroup]],
    uint lane                      [[thread_index_in_simdgroup]],
    uint n_simd_groups             [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared_values[MAX_SIMD_GROUPS];
    threadgroup uint shared_places[MAX_SIMD_GROUPS];

    const SimdPlace at = { simd_group, lane, n_simd_groups };
    const Candidate mine = scan(values, 0, params.count, thread_index, n_threads);
    const Candidate best = threadgroup_best(mine, shared_values, shared_places, at);
    if (thread_index == 0) {
        const uint place = best.place == NO_CANDIDATE ? 0 : best.place;
        const uint chosen = params.indexed != 0 ? ids[place] : place;
        store_token(chosen, token, history, params.pos, params.history_len);
    }
}
