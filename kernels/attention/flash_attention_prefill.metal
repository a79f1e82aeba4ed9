// flash_attention_prefill_f16: attention of many rows of one sequence with SIMD group matrices; medium
// prefills and large heads.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one threadgroup of 128 threads for each block of QUERY_ROWS (8 or 16) rows (x) and head
//          (y); QUERY_ROWS * head_dim <= 2048.
// Memory:  Q (8 KB) and the scores of 32 keys (2 KB) in threadgroup memory. Keys and values are read
//          from device memory straight into matrices; in 8 bits each lane widens its two elements of a
//          matrix to floats, which loses nothing and needs no further memory. Of the 32 keys each SIMD group scores 8; of the
//          output it holds every fourth 8 columns in registers. Three barriers for each 32 keys.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_tile.h"

using namespace metal;

constant constexpr uint MAX_QUERY_ROWS = 16;
constant constexpr uint MAX_QUERY_ELEMENTS = 2048;
// Rows whose softmax one SIMD group keeps.
constant constexpr uint ROWS_PER_GROUP = MAX_QUERY_ROWS / PREFILL_SIMD_GROUPS;
// Output matrices of one SIMD group: 8 rows of 256 / 4 columns, or 16 of 128 / 4.
constant constexpr uint OUTPUT_MATRICES = MAX_QUERY_ELEMENTS / (MATRIX * MATRIX * PREFILL_SIMD_GROUPS);

// Adds the product with keys 8 i .. 8 i + 7 of the tile: columns are keys, rows are elements from `element`
// on.
inline void multiply_q8_keys(
    thread simdgroup_float8x8 &products, simdgroup_float8x8 q, device const half *k, KeyTile tile, uint i,
    uint element, MatrixPlace at
) {
    simdgroup_float8x8 keys;
    const uint key = MATRIX * i + at.column;
    const uint row = element + at.row;
    elements(keys) = float2(load_one(k, tile.at(key), row), load_one(k, tile.at(key + 1), row));
    simdgroup_multiply_accumulate(products, q, keys, products);
}

// Adds the weighted values 8 i .. 8 i + 7 of the tile: rows are values, columns are elements from `element`
// on.
inline void multiply_q8_values(
    thread simdgroup_float8x8 &output, simdgroup_float8x8 weights, device const half *v, KeyTile tile, uint i,
    uint element, MatrixPlace at
) {
    simdgroup_float8x8 values;
    const SlotAt value = tile.at(MATRIX * i + at.row);
    const uint column = element + at.column;
    elements(values) = float2(load_one(v, value, column), load_one(v, value, column + 1));
    simdgroup_multiply_accumulate(output, weights, values, output);
}

// Columns: keys 8 i .. 8 i + 7 of the tile. Rows: elements from `element` on.
inline simdgroup_half8x8 load_keys(
    device const half *k, KeyTile tile, uint i, uint element, MatrixPlace at
) {
    simdgroup_half8x8 keys;
    if (tile.is_whole()) {
        simdgroup_load(keys, k + tile.at(MATRIX * i).numbers + element, tile.head_dim, ulong2(0), true);
    } else {
        const uint key = MATRIX * i + at.column;
        device const half *row = k + element + at.row;
        elements(keys) = half2(row[tile.at(key).numbers], row[tile.at(key + 1).numbers]);
    }
    return keys;
}

// Rows: keys 8 i .. 8 i + 7 of the tile. Columns: elements from `element` on.
inline simdgroup_half8x8 load_values(
    device const half *v, KeyTile tile, uint i, uint element, MatrixPlace at
) {
    simdgroup_half8x8 values;
    if (tile.is_whole()) {
        simdgroup_load(values, v + tile.at(MATRIX * i).numbers + element, tile.head_dim);
    } else {
        device const half *row = v + tile.at(MATRIX * i + at.row).numbers + element + at.column;
        elements(values) = half2(row[0], row[1]);
    }
    return values;
}

// The threadgroup memory of a block of queries, and where a thread stands in it.
struct QueryBlock {
    threadgroup float *queries;      // (QUERY_ROWS, head_dim)
    threadgroup float *scores;       // (QUERY_ROWS, 32): products, then weights
    threadgroup float *corrections;  // (QUERY_ROWS)
    uint simd_group;
    uint lane;

    // Output matrix i of a SIMD group: which 8 rows, and which 8 columns.
    uint pass(uint i, uint columns_per_group) const { return i / columns_per_group; }
    uint column(uint i, uint columns_per_group) const {
        return simd_group + PREFILL_SIMD_GROUPS * (i % columns_per_group);
    }

    // Products of every query with the 8 keys that fall to this SIMD group.
    void multiply_keys(device const half *k, KeyTile tile) const {
        const MatrixPlace at = matrix_place(lane);
        for (uint pass = 0; pass < QUERY_ROWS / MATRIX; pass++) {
            simdgroup_float8x8 products = make_filled_simdgroup_matrix<float, MATRIX, MATRIX>(0.0f);
            for (uint element = 0; element < tile.head_dim; element += MATRIX) {
                simdgroup_float8x8 q;
                simdgroup_load(q, queries + pass * MATRIX * tile.head_dim + element, tile.head_dim);
                if (KV_Q8) {
                    multiply_q8_keys(products, q, k, tile, simd_group, element, at);
                } else {
                    const simdgroup_half8x8 keys = load_keys(k, tile, simd_group, element, at);
                    simdgroup_multiply_accumulate(products, q, keys, products);
                }
            }
            simdgroup_store(products, scores + pass * MATRIX * KEY_TILE + simd_group * MATRIX, KEY_TILE);
        }
    }

    // Adds the weighted values of the tile to output matrix i.
    void add_values(
        thread simdgroup_float8x8 &output, uint pass, uint column, device const half *v, KeyTile tile
    ) const {
        const MatrixPlace at = matrix_place(lane);
        elements(output) *= corrections[pass * MATRIX + at.row];
        for (uint t = 0; t < KEY_MATRICES; t++) {
            simdgroup_float8x8 weights;
            simdgroup_load(weights, scores + pass * MATRIX * KEY_TILE + t * MATRIX, KEY_TILE);
            if (KV_Q8) {
                multiply_q8_values(output, weights, v, tile, t, column * MATRIX, at);
            } else {
                const simdgroup_half8x8 values = load_values(v, tile, t, column * MATRIX, at);
                simdgroup_multiply_accumulate(output, weights, values, output);
            }
        }
    }
};

// The online softmax of one row, kept by a whole SIMD group: a lane for each of the 32 keys.
struct GroupSoftmax {
    RowMask mask;
    float peak;
    float sum;

    // The lane's weight for its product; `correction` is the factor of what was summed before.
    float weight(float product, uint key, thread float &correction) {
        const bool visible = mask.visible(key);
        const float key_score = visible ? score(product) : LOWEST_SCORE;
        const float new_peak = max(peak, simd_max(key_score));
        const float weight = visible ? fast::exp2(key_score - new_peak) : 0.0f;
        correction = fast::exp2(peak - new_peak);
        sum = sum * correction + simd_sum(weight);
        peak = new_peak;
        return weight;
    }
};

kernel void flash_attention_prefill_f16(
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
    threadgroup float queries[MAX_QUERY_ELEMENTS];
    threadgroup float scores[MAX_QUERY_ROWS * KEY_TILE];
    threadgroup float corrections[MAX_QUERY_ROWS];
    static_assert(sizeof(queries) + sizeof(scores) + sizeof(corrections) <= 32768, "threadgroup memory");

    const uint sequence = rows[params.first_row].sequence;
    const Keys keys = keys_of(K, V, params, table, uint2(sequence, place.y));
    const uint head_dim = keys.slots.head_dim;
    const RowBlock block = row_block(params, place.x, QUERY_ROWS);
    const TileRange range = tile_range(rows, block, QUERY_ROWS, lane);
    const QueryBlock shared = { queries, scores, corrections, simd_group, lane };
    const uint n_columns = head_dim / MATRIX;
    const uint columns_per_group = (n_columns + PREFILL_SIMD_GROUPS - 1) / PREFILL_SIMD_GROUPS;
    const uint n_output = QUERY_ROWS / MATRIX * columns_per_group;
    const uint n_rows = QUERY_ROWS / PREFILL_SIMD_GROUPS;

    const float factor = query_factor(params);
    for (uint i = thread_index; i < QUERY_ROWS * head_dim; i += PREFILL_THREADS) {
        const ulong offset = query_offset(params, block.row(i / head_dim), place.y);
        queries[i] = Q[offset + i % head_dim] * factor;
    }
    simdgroup_float8x8 output[OUTPUT_MATRICES];
    // Loops over matrices and rows go to the most that there can be and ask whether there are as many, so that both are
    // indexed by constants and stay in registers; with FC_HEAD_DIM nothing is asked.
#pragma unroll
    for (uint i = 0; i < OUTPUT_MATRICES; i++) {
        output[i] = make_filled_simdgroup_matrix<float, MATRIX, MATRIX>(0.0f);
    }
    GroupSoftmax softmaxes[ROWS_PER_GROUP];
#pragma unroll
    for (uint j = 0; j < ROWS_PER_GROUP; j++) {
        if (j < n_rows) {
            device const Row &row = rows[block.row(simd_group + PREFILL_SIMD_GROUPS * j)];
            softmaxes[j] = { row_mask(row), LOWEST_SCORE, 0.0f };
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint first = range.begin; first < range.end; first += KEY_TILE) {
        const KeyTile tile = key_tile(keys, first, range.end);
        shared.multiply_keys(keys.k, tile);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        // A SIMD group takes every fourth row.
#pragma unroll
        for (uint j = 0; j < ROWS_PER_GROUP; j++) {
            const uint row = simd_group + PREFILL_SIMD_GROUPS * j;
            if (j < n_rows) {
                float correction;
                scores[row * KEY_TILE + lane] =
                    softmaxes[j].weight(scores[row * KEY_TILE + lane], first + lane, correction);
                if (lane == 0) {
                    corrections[row] = correction;
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        // A SIMD group takes every fourth 8 columns.
#pragma unroll
        for (uint i = 0; i < OUTPUT_MATRICES; i++) {
            const uint column = shared.column(i, columns_per_group);
            if (i < n_output && column < n_columns) {
                shared.add_values(output[i], shared.pass(i, columns_per_group), column, keys.v, tile);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

#pragma unroll
    for (uint j = 0; j < ROWS_PER_GROUP; j++) {
        if (lane == 0 && j < n_rows) {
            corrections[simd_group + PREFILL_SIMD_GROUPS * j] = inverse_sum(softmaxes[j].sum);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const MatrixPlace at = matrix_place(lane);
#pragma unroll
    for (uint i = 0; i < OUTPUT_MATRICES; i++) {
        const uint row = shared.pass(i, columns_per_group) * MATRIX + at.row;
        const uint column = shared.column(i, columns_per_group);
        if (i < n_output && column < n_columns && block.first + row <= block.last) {
            device float *out = O + query_offset(params, block.first + row, place.y) + column * MATRIX + at.column;
            const float2 normal = elements(output[i]) * corrections[row];
            out[0] = normal.x;
            out[1] = normal.y;
        }
    }
}
