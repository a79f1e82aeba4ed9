// tensor_attention_f16: attention of many rows of one sequence on NVIDIA's tensor cores; heads of up to 128 elements, a
// multiple of 16.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one threadgroup of 128 threads for each 64 rows (x) and head (y). The last rows, which see most keys, come first.
// Memory:  each SIMD group holds the scores and the output of its 16 rows in registers; its queries lie in threadgroup
//          memory, as do the keys and values of 64 slots, which all four SIMD groups read. Those of the next 64 are copied
//          meanwhile. Vectors of 16 bytes; rows are one longer than the head, so that the 8 rows of a matrix fall into different
//          banks. One barrier for each 64 keys. Only tiles that some row of a SIMD group does not see as a whole are masked.
//
// Queries, times their factor, and the weights of the softmax, between 0 and 1, are rounded to halves; sums are floats.

#include <akunu_tensor>

#include "ShaderTypes.h"
#include "include/attention_tile.h"
#include "include/inputs.h"
#include "include/tensor_row.h"

using namespace metal;

// Rows of a threadgroup and of a matrix, and keys of a tile.
constant constexpr uint TENSOR_ROWS = 64;
constant constexpr uint MATRIX_ROWS = 16;
constant constexpr uint TENSOR_KEYS = 64;
constant constexpr uint TENSOR_MAX_HEAD_DIM = 128;
// Matrices of 16 elements of a head, of 8 keys and of 16 keys.
constant constexpr uint HEAD_STEPS = TENSOR_MAX_HEAD_DIM / 16;
constant constexpr uint SCORES = TENSOR_KEYS / 8;
constant constexpr uint KEY_STEPS = TENSOR_KEYS / 16;
// Room for the keys and values that are multiplied, and for those that are copied.
constant constexpr uint STAGES = 2;
// Above what is hidden, LOWEST_SCORE, by more than any exponential, and below every score.
constant constexpr float LOWEST_PEAK = -1e30f;

// Copies the keys, or values, of 64 slots from `first` on. In the place of those from `end` on, the last one before that is read
// again.
inline void copy_slots(
    threadgroup uint4 *to, device const half *pool, Slots slots, uint2 first_end, uint thread_index,
    thread nvidia::AsyncCopies &copies
) {
    const uint n_vectors = slots.head_dim / 8;
    const uint second = min(first_end.x + KEY_TILE, first_end.y - 1);
    const SlotAt low = slots.at(first_end.x);
    const SlotAt high = slots.at(second);
    const uint last = first_end.y - 1 - first_end.x;
#pragma unroll
    for (uint i = 0; i < TENSOR_KEYS * TENSOR_MAX_HEAD_DIM / 8; i += PREFILL_THREADS) {
        const uint row = (thread_index + i) / n_vectors;
        const uint c = (thread_index + i) % n_vectors;
        if (row < TENSOR_KEYS) {
            const uint slot = min(row, last);
            const SlotAt at = slot < KEY_TILE ? low.after(slot, slots.head_dim)
                                              : high.after(first_end.x + slot - second, slots.head_dim);
            threadgroup uint4 *place = to + row * (n_vectors + 1) + c;
            if (KV_Q8) {
                const float4 a = load_four(pool, at, 8 * c);
                const float4 b = load_four(pool, at, 8 * c + 4);
                *place = uint4(pack(a.xy), pack(a.zw), pack(b.xy), pack(b.zw));
            } else {
                copies.copy(place, (device const uint4 *)(pool + at.numbers) + c);
            }
        }
    }
}

inline float2 visible_scores(float2 scores, RowMask mask, uint key) {
    return float2(mask.visible(key) ? scores.x : LOWEST_SCORE, mask.visible(key + 1) ? scores.y : LOWEST_SCORE);
}

kernel void tensor_attention_f16(
    device const float *Q               [[buffer(0)]],
    device const half *K                [[buffer(1)]],
    device const half *V                [[buffer(2)]],
    device float *O                     [[buffer(3)]],
    constant AttentionParams &params    [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const uint *table            [[buffer(6)]],
    threadgroup uint4 *memory           [[threadgroup(0)]],
    uint2 place                         [[threadgroup_position_in_grid]],
    uint2 n_places                      [[threadgroups_per_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]]
) {
    nvidia::small_threadgroups<2>();
    inputs_are_ready();

    const uint sequence = rows[params.first_row].sequence;
    const Keys keys = keys_of(K, V, params, table, uint2(sequence, place.y));
    const uint head_dim = keys.slots.head_dim;
    const uint n_vectors = head_dim / 8;
    const uint stride = n_vectors + 1;
    const RowBlock block = row_block(params, n_places.x - 1 - place.x, TENSOR_ROWS);
    // Lane i asks rows i and i + 32.
    const RowMask low = row_mask(rows[block.row(lane)]);
    const RowMask high = row_mask(rows[block.row(lane + 32)]);
    const uint first_slot = min(low.end == 0 ? 0xFFFFFFFFu : low.begin, high.end == 0 ? 0xFFFFFFFFu : high.begin);
    const uint begin = tile_of(simd_min(first_slot));
    const uint end = simd_max(max(low.end, high.end));

    // This lane's rows; one beyond the last computes that again and is not written.
    const uint first_row = simd_group * MATRIX_ROWS;
    const uint in_block = first_row + lane / 4;
    const uint2 my_rows = uint2(block.row(in_block), block.row(in_block + 8));
    const RowMask upper = row_mask(rows[my_rows.x]);
    const RowMask lower = row_mask(rows[my_rows.y]);
    // The slots that all rows of the SIMD group see, and the end of those that some do.
    const uint whole_begin = simd_max(max(upper.begin, lower.begin));
    const uint whole_end = simd_min(min(upper.end, lower.end));
    const uint last_end = simd_max(max(upper.end, lower.end));

    const uint tile_vectors = TENSOR_KEYS * stride;
    threadgroup uint4 *q_tile = memory;
    threadgroup uint4 *k_tiles = q_tile + TENSOR_ROWS * stride;
    threadgroup uint4 *v_tiles = k_tiles + STAGES * tile_vectors;
    nvidia::AsyncCopies copies;
    if (begin < end) {
        copy_slots(k_tiles, keys.k, keys.slots, uint2(begin, end), thread_index, copies);
        copy_slots(v_tiles, keys.v, keys.slots, uint2(begin, end), thread_index, copies);
    }
    copies.commit();

    const float factor = query_factor(params);
    for (uint i = thread_index; i < TENSOR_ROWS * n_vectors; i += PREFILL_THREADS) {
        const uint row = i / n_vectors;
        const uint c = i % n_vectors;
        device const float2 *from = (device const float2 *)(Q + query_offset(params, block.row(row), place.y)) + 4 * c;
        q_tile[row * stride + c] =
            uint4(pack(from[0] * factor), pack(from[1] * factor), pack(from[2] * factor), pack(from[3] * factor));
    }

    // Of the upper and the lower row.
    float2 peaks = float2(LOWEST_PEAK);
    float2 sums = float2(0.0f);
    float4 outputs[2 * HEAD_STEPS];
#pragma unroll
    for (uint d = 0; d < 2 * HEAD_STEPS; d++) {
        outputs[d] = float4(0.0f);
    }

    uint stage = 0;
    for (uint first = begin; first < end; first += TENSOR_KEYS) {
        // The tile is there, for everyone, and everyone has left the one before.
        copies.wait<0>();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint next = stage ^ 1;
        if (first + TENSOR_KEYS < end) {
            const uint2 rest = uint2(first + TENSOR_KEYS, end);
            copy_slots(k_tiles + next * tile_vectors, keys.k, keys.slots, rest, thread_index, copies);
            copy_slots(v_tiles + next * tile_vectors, keys.v, keys.slots, rest, thread_index, copies);
        }
        copies.commit();
        threadgroup const uint4 *k_tile = k_tiles + stage * tile_vectors;
        threadgroup const uint4 *v_tile = v_tiles + stage * tile_vectors;
        stage = next;
        if (first >= last_end) {
            continue;
        }

        float4 scores[SCORES];
#pragma unroll
        for (uint j = 0; j < SCORES; j++) {
            scores[j] = float4(0.0f);
        }
        threadgroup const uint4 *q_from = q_tile + (first_row + lane % 16) * stride + lane / 16;
        threadgroup const uint4 *k_from = k_tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2;
#pragma unroll
        for (uint d = 0; d < HEAD_STEPS; d++) {
            if (16 * d < head_dim) {
                const uint4 left = nvidia::load_matrices(q_from + 2 * d);
#pragma unroll
                for (uint j = 0; j < SCORES; j += 2) {
                    const uint4 right = nvidia::load_matrices(k_from + 8 * j * stride + 2 * d);
                    scores[j] = nvidia::multiply_accumulate(left, right.xy, scores[j]);
                    scores[j + 1] = nvidia::multiply_accumulate(left, right.zw, scores[j + 1]);
                }
            }
        }

        const bool is_whole = first >= whole_begin && first + TENSOR_KEYS <= whole_end;
        float2 new_peaks = peaks;
#pragma unroll
        for (uint j = 0; j < SCORES; j++) {
            if (SOFTCAP > 0.0f) {
                scores[j] = float4(score(scores[j].x), score(scores[j].y), score(scores[j].z), score(scores[j].w));
            }
            if (!is_whole) {
                const uint key = first + 8 * j + lane % 4 * 2;
                scores[j] = float4(visible_scores(scores[j].xy, upper, key), visible_scores(scores[j].zw, lower, key));
            }
            new_peaks = max(new_peaks, max(scores[j].xz, scores[j].yw));
        }
        new_peaks = float2(quad_row_max(new_peaks.x), quad_row_max(new_peaks.y));
        const float2 corrections = float2(fast::exp2(peaks.x - new_peaks.x), fast::exp2(peaks.y - new_peaks.y));
        peaks = new_peaks;
        sums *= corrections;
#pragma unroll
        for (uint j = 0; j < SCORES; j++) {
            scores[j].x = fast::exp2(scores[j].x - peaks.x);
            scores[j].y = fast::exp2(scores[j].y - peaks.x);
            scores[j].z = fast::exp2(scores[j].z - peaks.y);
            scores[j].w = fast::exp2(scores[j].w - peaks.y);
            sums += scores[j].xz + scores[j].yw;
        }
#pragma unroll
        for (uint d = 0; d < 2 * HEAD_STEPS; d++) {
            outputs[d] *= float4(corrections.x, corrections.x, corrections.y, corrections.y);
        }

        threadgroup const uint4 *v_from = v_tile + lane % 16 * stride + lane / 16;
#pragma unroll
        for (uint s = 0; s < KEY_STEPS; s++) {
            const float4 a = scores[2 * s];
            const float4 b = scores[2 * s + 1];
            const uint4 weights = uint4(pack(a.xy), pack(a.zw), pack(b.xy), pack(b.zw));
#pragma unroll
            for (uint d = 0; d < HEAD_STEPS; d++) {
                if (16 * d < head_dim) {
                    const uint4 right = nvidia::load_transposed(v_from + 16 * s * stride + 2 * d);
                    outputs[2 * d] = nvidia::multiply_accumulate(weights, right.xy, outputs[2 * d]);
                    outputs[2 * d + 1] = nvidia::multiply_accumulate(weights, right.zw, outputs[2 * d + 1]);
                }
            }
        }
    }

    const float upper_inverse = inverse_sum(quad_row_sum(sums.x));
    const float lower_inverse = inverse_sum(quad_row_sum(sums.y));
    device float *upper_out = O + query_offset(params, my_rows.x, place.y) + lane % 4 * 2;
    device float *lower_out = O + query_offset(params, my_rows.y, place.y) + lane % 4 * 2;
    const bool has_upper = block.first + in_block <= block.last;
    const bool has_lower = block.first + in_block + 8 <= block.last;
#pragma unroll
    for (uint d = 0; d < 2 * HEAD_STEPS; d++) {
        if (8 * d < head_dim && has_upper) {
            *(device float2 *)(upper_out + 8 * d) = outputs[d].xy * upper_inverse;
        }
        if (8 * d < head_dim && has_lower) {
            *(device float2 *)(lower_out + 8 * d) = outputs[d].zw * lower_inverse;
        }
    }
}
