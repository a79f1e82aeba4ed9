// flash_attention_prefill_v2_f16: attention of many rows of one sequence; long prefills, heads of up to
// 128 elements.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one threadgroup of 128 threads for each 32 rows (x) and head (y).
// Memory:  each SIMD group holds 8 rows, their scores and their output in registers. Keys, then
//          values, of 32 slots share one tile of threadgroup memory (8.5 KB), which all four SIMD
//          groups read. The softmax of a row stays within the four lanes that hold the row: no
//          threadgroup memory for scores. Four barriers for each 32 keys.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_tile.h"

using namespace metal;

constant constexpr uint V2_MAX_HEAD_DIM = 128;
constant constexpr uint V2_MATRICES = V2_MAX_HEAD_DIM / MATRIX;
constant constexpr uint V2_QUERY_ROWS = MATRIX * PREFILL_SIMD_GROUPS;
// Rows of the tile are 16 bytes apart from a multiple of the banks.
constant constexpr uint TILE_PAD = 8;

// Copies the keys, or values, of a tile of slots; what lies beyond its end becomes zero. Those in 8 bits are
// rounded to halves, 2^-12 of a number, which is little beside their own steps.
inline void fill_tile(threadgroup half *to, device const half *pool, KeyTile tile, uint thread_index) {
    const uint n_vec = tile.head_dim / 4;
    for (uint i = thread_index; i < KEY_TILE * n_vec; i += PREFILL_THREADS) {
        const uint row = i / n_vec;
        const uint element = 4 * (i % n_vec);
        threadgroup half4 *target = (threadgroup half4 *)(to + row * (tile.head_dim + TILE_PAD) + element);
        *target = row < tile.n_keys ? half4(load_four(pool, tile.at(row), element)) : half4(0.0h);
    }
}

// The online softmax of the row of scores that a lane shares with three others.
struct RowSoftmax {
    float peak;
    float sum;

    // Turns products into weights, in place, and returns the correction of what was summed before.
    float update(thread simdgroup_float8x8 *products, RowMask mask, uint first_key, MatrixPlace at) {
        float new_peak = peak;
        for (uint t = 0; t < KEY_MATRICES; t++) {
            for (uint j = 0; j < 2; j++) {
                const bool visible = mask.visible(first_key + t * MATRIX + at.column + j);
                const float key_score = visible ? score(elements(products[t])[j]) : LOWEST_SCORE;
                elements(products[t])[j] = key_score;
                new_peak = max(new_peak, key_score);
            }
        }
        new_peak = row_max(new_peak);
        float block_sum = 0.0f;
        for (uint t = 0; t < KEY_MATRICES; t++) {
            for (uint j = 0; j < 2; j++) {
                const float key_score = elements(products[t])[j];
                const float weight = key_score == LOWEST_SCORE ? 0.0f : fast::exp2(key_score - new_peak);
                elements(products[t])[j] = weight;
                block_sum += weight;
            }
        }
        const float correction = fast::exp2(peak - new_peak);
        sum = sum * correction + row_sum(block_sum);
        peak = new_peak;
        return correction;
    }
};

kernel void flash_attention_prefill_v2_f16(
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
    threadgroup half4 shared_vec[KEY_TILE * (V2_MAX_HEAD_DIM + TILE_PAD) / 4];
    static_assert(sizeof(shared_vec) <= 32768, "threadgroup memory");
    threadgroup half *shared = (threadgroup half *)shared_vec;

    const uint sequence = rows[params.first_row].sequence;
    const Keys keys = keys_of(K, V, params, table, uint2(sequence, place.y));
    const uint head_dim = keys.slots.head_dim;
    const uint n_matrices = head_dim / MATRIX;
    const uint tile_stride = head_dim + TILE_PAD;
    const RowBlock block = row_block(params, place.x, V2_QUERY_ROWS);
    const TileRange range = tile_range(rows, block, V2_QUERY_ROWS, lane);
    const MatrixPlace at = matrix_place(lane);
    // A row beyond the last one computes that again and is not written.
    const uint in_block = simd_group * MATRIX + at.row;
    const uint row = block.row(in_block);
    const RowMask mask = row_mask(rows[row]);

    device const float *q_row = Q + query_offset(params, row, place.y) + at.column;
    const float factor = query_factor(params);
    simdgroup_float8x8 queries[V2_MATRICES];
    simdgroup_float8x8 output[V2_MATRICES];
    // Loops over matrices go to the most that there can be and ask whether there are as many, so that matrices are indexed
    // by constants and stay in registers; with FC_HEAD_DIM nothing is asked.
#pragma unroll
    for (uint d = 0; d < V2_MATRICES; d++) {
        if (d < n_matrices) {
            elements(queries[d]) = float2(q_row[d * MATRIX], q_row[d * MATRIX + 1]) * factor;
            output[d] = make_filled_simdgroup_matrix<float, MATRIX, MATRIX>(0.0f);
        }
    }
    RowSoftmax softmax = { LOWEST_SCORE, 0.0f };

    for (uint first = range.begin; first < range.end; first += KEY_TILE) {
        const KeyTile tile = key_tile(keys, first, range.end);
        fill_tile(shared, keys.k, tile, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        simdgroup_float8x8 weights[KEY_MATRICES];
        for (uint t = 0; t < KEY_MATRICES; t++) {
            weights[t] = make_filled_simdgroup_matrix<float, MATRIX, MATRIX>(0.0f);
        }
#pragma unroll
        for (uint d = 0; d < V2_MATRICES; d++) {
            if (d < n_matrices) {
#pragma unroll
                for (uint t = 0; t < KEY_MATRICES; t++) {
                    simdgroup_half8x8 loaded;
                    simdgroup_load(loaded, shared + t * MATRIX * tile_stride + d * MATRIX, tile_stride,
                                   ulong2(0), true);
                    simdgroup_multiply_accumulate(weights[t], queries[d], loaded, weights[t]);
                }
            }
        }
        const float correction = softmax.update(weights, mask, first, at);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        fill_tile(shared, keys.v, tile, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint d = 0; d < V2_MATRICES; d++) {
            if (d < n_matrices) {
                elements(output[d]) *= correction;
#pragma unroll
                for (uint t = 0; t < KEY_MATRICES; t++) {
                    simdgroup_half8x8 values;
                    simdgroup_load(values, shared + t * MATRIX * tile_stride + d * MATRIX, tile_stride);
                    simdgroup_multiply_accumulate(output[d], weights[t], values, output[d]);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    const float inverse = inverse_sum(softmax.sum);
    if (block.first + in_block <= block.last) {
        device float *out = O + query_offset(params, row, place.y) + at.column;
#pragma unroll
        for (uint d = 0; d < V2_MATRICES; d++) {
            if (d < n_matrices) {
                const float2 normal = elements(output[d]) * inverse;
                out[d * MATRIX] = normal.x;
                out[d * MATRIX + 1] = normal.y;
            }
        }
    }
}
