// tensor_attention_f16: attention of many rows of one sequence on NVIDIA's tensor cores; heads of up to 128 elements, a
// multiple of 16.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one threadgroup of 128 threads for each 64 rows (x) and head (y).
// Memory:  each SIMD group holds 16 rows, their scores and their output in registers. Keys and values of 64 slots lie in
//          threadgroup memory (35 KB), which all four SIMD groups read; their rows are a vector longer than the head, so
//          that the 8 rows of a matrix fall into different banks. Two barriers for each 64 keys. Only tiles that some row
//          of a SIMD group does not see as a whole are masked.
//
// Queries are a sum of two halves, which loses nothing that matters; weights of the softmax, between 0 and 1, are rounded to
// halves; sums are floats.

#include <akunu_tensor>

#include "ShaderTypes.h"
#include "include/attention_tile.h"
#include "include/tensor_row.h"

using namespace metal;

constant constexpr uint TENSOR_ROWS = 64;
constant constexpr uint TENSOR_KEYS = 64;
constant constexpr uint TENSOR_MAX_HEAD_DIM = 128;
// Matrices of 16 elements of a head, of 8 keys and of 16 keys.
constant constexpr uint HEAD_STEPS = TENSOR_MAX_HEAD_DIM / 16;
constant constexpr uint SCORES = TENSOR_KEYS / 8;
constant constexpr uint KEY_STEPS = TENSOR_KEYS / 16;
constant constexpr uint MAX_TILE_VECTORS = TENSOR_KEYS * (TENSOR_MAX_HEAD_DIM / 8 + 1);

// Copies the keys, or values, of up to 64 slots from `first` on; what lies from `end` on becomes zero.
inline void fill_vectors(
    threadgroup uint4 *to, device const half *pool, Slots slots, uint2 first_end, uint thread_index
) {
    const uint n_vectors = slots.head_dim / 8;
    const KeyTile low = { slots.at(first_end.x), min(KEY_TILE, first_end.y - first_end.x), slots.head_dim };
    const uint second = first_end.x + KEY_TILE;
    const bool has_second = second < first_end.y;
    const KeyTile high = {
        slots.at(has_second ? second : first_end.x), has_second ? min(KEY_TILE, first_end.y - second) : 1, slots.head_dim
    };
    for (uint i = thread_index; i < TENSOR_KEYS * n_vectors; i += PREFILL_THREADS) {
        const uint row = i / n_vectors;
        const uint c = i % n_vectors;
        const SlotAt at = row < KEY_TILE ? low.at(row) : high.at(row - KEY_TILE);
        uint4 vector = uint4(0);
        if (first_end.x + row < first_end.y) {
            if (KV_Q8) {
                const float4 a = load_four(pool, at, 8 * c);
                const float4 b = load_four(pool, at, 8 * c + 4);
                vector = uint4(pack(a.xy), pack(a.zw), pack(b.xy), pack(b.zw));
            } else {
                vector = *(device const uint4 *)(pool + at.numbers + 8 * c);
            }
        }
        to[row * (n_vectors + 1) + c] = vector;
    }
}

// The online softmax of one of a lane's two rows.
struct TensorRow {
    RowMask mask;
    float peak;
    float sum;

    // The scores of two neighbouring keys, from products.
    float2 scores(float2 products, uint key, bool is_whole) const {
        if (is_whole) {
            return float2(score(products.x), score(products.y));
        }
        return float2(
            mask.visible(key) ? score(products.x) : LOWEST_SCORE,
            mask.visible(key + 1) ? score(products.y) : LOWEST_SCORE
        );
    }

    float2 weights(float2 scores) const {
        return float2(
            scores.x == LOWEST_SCORE ? 0.0f : fast::exp2(scores.x - peak),
            scores.y == LOWEST_SCORE ? 0.0f : fast::exp2(scores.y - peak)
        );
    }
};

kernel void tensor_attention_f16(
    device const float *Q               [[buffer(0)]],
    device const half *K                [[buffer(1)]],
    device const half *V                [[buffer(2)]],
    device float *O                     [[buffer(3)]],
    constant AttentionParams &params    [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const uint *table            [[buffer(6)]],
    uint2 place                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]]
) {
    threadgroup uint4 k_tile[MAX_TILE_VECTORS];
    threadgroup uint4 v_tile[MAX_TILE_VECTORS];

    const uint sequence = rows[params.first_row].sequence;
    const Keys keys = keys_of(K, V, params, table, uint2(sequence, place.y));
    const uint head_dim = keys.slots.head_dim;
    const uint stride = head_dim / 8 + 1;
    const RowBlock block = row_block(params, place.x, TENSOR_ROWS);
    // Lane i asks rows i and i + 32.
    const RowMask low = row_mask(rows[block.row(lane)]);
    const RowMask high = row_mask(rows[block.row(lane + 32)]);
    const uint first_slot = min(low.end == 0 ? 0xFFFFFFFFu : low.begin, high.end == 0 ? 0xFFFFFFFFu : high.begin);
    const uint begin = tile_of(simd_min(first_slot));
    const uint end = simd_max(max(low.end, high.end));

    // This lane's rows; one beyond the last computes that again and is not written.
    const uint in_block = simd_group * 16 + lane / 4;
    const uint2 my_rows = uint2(block.row(in_block), block.row(in_block + 8));
    TensorRow upper = { row_mask(rows[my_rows.x]), LOWEST_SCORE, 0.0f };
    TensorRow lower = { row_mask(rows[my_rows.y]), LOWEST_SCORE, 0.0f };
    // The slots that all rows of the SIMD group see, and the end of those that some do.
    const uint whole_begin = simd_max(max(upper.mask.begin, lower.mask.begin));
    const uint whole_end = simd_min(min(upper.mask.end, lower.mask.end));
    const uint last_end = simd_max(max(upper.mask.end, lower.mask.end));

    const float factor = query_factor(params);
    device const float *upper_q = Q + query_offset(params, my_rows.x, place.y) + lane % 4 * 2;
    device const float *lower_q = Q + query_offset(params, my_rows.y, place.y) + lane % 4 * 2;
    uint4 queries[HEAD_STEPS];
    uint4 query_rests[HEAD_STEPS];
    float4 outputs[2 * HEAD_STEPS];
#pragma unroll
    for (uint d = 0; d < HEAD_STEPS; d++) {
        outputs[2 * d] = float4(0.0f);
        outputs[2 * d + 1] = float4(0.0f);
        if (16 * d < head_dim) {
            const float2 a = float2(upper_q[16 * d], upper_q[16 * d + 1]) * factor;
            const float2 b = float2(lower_q[16 * d], lower_q[16 * d + 1]) * factor;
            const float2 c = float2(upper_q[16 * d + 8], upper_q[16 * d + 9]) * factor;
            const float2 e = float2(lower_q[16 * d + 8], lower_q[16 * d + 9]) * factor;
            queries[d] = uint4(pack(a), pack(b), pack(c), pack(e));
            query_rests[d] = uint4(pack_rest(a), pack_rest(b), pack_rest(c), pack_rest(e));
        }
    }

    for (uint first = begin; first < end; first += TENSOR_KEYS) {
        fill_vectors(k_tile, keys.k, keys.slots, uint2(first, end), thread_index);
        fill_vectors(v_tile, keys.v, keys.slots, uint2(first, end), thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (first < last_end) {
            float4 scores[SCORES];
#pragma unroll
            for (uint j = 0; j < SCORES; j += 2) {
                scores[j] = float4(0.0f);
                scores[j + 1] = float4(0.0f);
                threadgroup const uint4 *from = k_tile + (8 * j + lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2;
#pragma unroll
                for (uint d = 0; d < HEAD_STEPS; d++) {
                    if (16 * d < head_dim) {
                        const uint4 right = nvidia::load_matrices(from + 2 * d);
                        scores[j] = nvidia::multiply_accumulate(queries[d], right.xy, scores[j]);
                        scores[j] = nvidia::multiply_accumulate(query_rests[d], right.xy, scores[j]);
                        scores[j + 1] = nvidia::multiply_accumulate(queries[d], right.zw, scores[j + 1]);
                        scores[j + 1] = nvidia::multiply_accumulate(query_rests[d], right.zw, scores[j + 1]);
                    }
                }
            }

            const bool is_whole = first >= whole_begin && first + TENSOR_KEYS <= whole_end;
            float upper_peak = upper.peak;
            float lower_peak = lower.peak;
#pragma unroll
            for (uint j = 0; j < SCORES; j++) {
                const uint key = first + 8 * j + lane % 4 * 2;
                scores[j].xy = upper.scores(scores[j].xy, key, is_whole);
                scores[j].zw = lower.scores(scores[j].zw, key, is_whole);
                upper_peak = max(upper_peak, max(scores[j].x, scores[j].y));
                lower_peak = max(lower_peak, max(scores[j].z, scores[j].w));
            }
            upper_peak = quad_row_max(upper_peak);
            lower_peak = quad_row_max(lower_peak);
            const float upper_correction = fast::exp2(upper.peak - upper_peak);
            const float lower_correction = fast::exp2(lower.peak - lower_peak);
            upper.peak = upper_peak;
            lower.peak = lower_peak;
            float upper_sum = 0.0f;
            float lower_sum = 0.0f;
#pragma unroll
            for (uint j = 0; j < SCORES; j++) {
                scores[j].xy = upper.weights(scores[j].xy);
                scores[j].zw = lower.weights(scores[j].zw);
                upper_sum += scores[j].x + scores[j].y;
                lower_sum += scores[j].z + scores[j].w;
            }
            upper.sum = upper.sum * upper_correction + quad_row_sum(upper_sum);
            lower.sum = lower.sum * lower_correction + quad_row_sum(lower_sum);

#pragma unroll
            for (uint d = 0; d < 2 * HEAD_STEPS; d++) {
                outputs[d] *= float4(upper_correction, upper_correction, lower_correction, lower_correction);
            }
#pragma unroll
            for (uint s = 0; s < KEY_STEPS; s++) {
                const float4 a = scores[2 * s];
                const float4 b = scores[2 * s + 1];
                const uint4 weights = uint4(pack(a.xy), pack(a.zw), pack(b.xy), pack(b.zw));
                threadgroup const uint4 *from = v_tile + (16 * s + lane % 16) * stride + lane / 16;
#pragma unroll
                for (uint d = 0; d < HEAD_STEPS; d++) {
                    if (16 * d < head_dim) {
                        const uint4 right = nvidia::load_transposed(from + 2 * d);
                        outputs[2 * d] = nvidia::multiply_accumulate(weights, right.xy, outputs[2 * d]);
                        outputs[2 * d + 1] = nvidia::multiply_accumulate(weights, right.zw, outputs[2 * d + 1]);
                    }
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    const float upper_inverse = inverse_sum(upper.sum);
    const float lower_inverse = inverse_sum(lower.sum);
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
