// flash_attention_prefill_f16: attention of many queries with SIMD group matrices; medium prefills and
// large heads.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one threadgroup of 128 threads for each block of QUERY_ROWS (8 or 16) queries (x) and head
//          (y); QUERY_ROWS * head_dim <= 2048.
// Memory:  Q (8 KB) and the scores of 32 keys (2 KB) in threadgroup memory. Keys and values are read
//          from device memory straight into matrices. Of the 32 keys each SIMD group scores 8; of the
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

// Columns: keys 8 i .. 8 i + 7 of the block. Rows: elements from `element` on.
inline simdgroup_half8x8 load_keys(KeyRing ring, KeyBlock block, uint i, uint element, MatrixPlace at) {
    simdgroup_half8x8 keys;
    if (block.is_whole()) {
        device const half *k = ring.k + ulong(block.first_slot + MATRIX * i) * ring.head_dim + element;
        simdgroup_load(keys, k, ring.head_dim, ulong2(0), true);
    } else {
        const uint slot = block.slot(MATRIX * i + at.column);
        const uint next = block.slot(MATRIX * i + at.column + 1);
        device const half *k = ring.k + element + at.row;
        elements(keys) = half2(k[ulong(slot) * ring.head_dim], k[ulong(next) * ring.head_dim]);
    }
    return keys;
}

// Rows: keys 8 i .. 8 i + 7 of the block. Columns: elements from `element` on.
inline simdgroup_half8x8 load_values(KeyRing ring, KeyBlock block, uint i, uint element, MatrixPlace at) {
    simdgroup_half8x8 values;
    if (block.is_whole()) {
        device const half *v = ring.v + ulong(block.first_slot + MATRIX * i) * ring.head_dim + element;
        simdgroup_load(values, v, ring.head_dim);
    } else {
        const uint slot = block.slot(MATRIX * i + at.row);
        device const half *v = ring.v + ulong(slot) * ring.head_dim + element + at.column;
        elements(values) = half2(v[0], v[1]);
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
    void multiply_keys(KeyRing ring, KeyBlock block) const {
        const MatrixPlace at = matrix_place(lane);
        for (uint pass = 0; pass < QUERY_ROWS / MATRIX; pass++) {
            simdgroup_float8x8 products = make_filled_simdgroup_matrix<float, MATRIX, MATRIX>(0.0f);
            for (uint element = 0; element < ring.head_dim; element += MATRIX) {
                simdgroup_float8x8 q;
                simdgroup_load(q, queries + pass * MATRIX * ring.head_dim + element, ring.head_dim);
                const simdgroup_half8x8 k = load_keys(ring, block, simd_group, element, at);
                simdgroup_multiply_accumulate(products, q, k, products);
            }
            simdgroup_store(products, scores + pass * MATRIX * KEY_TILE + simd_group * MATRIX, KEY_TILE);
        }
    }

    // Adds the weighted values of the block to output matrix i.
    void add_values(
        thread simdgroup_float8x8 &output, uint pass, uint column, KeyRing ring, KeyBlock block
    ) const {
        const MatrixPlace at = matrix_place(lane);
        elements(output) *= corrections[pass * MATRIX + at.row];
        for (uint t = 0; t < KEY_MATRICES; t++) {
            simdgroup_float8x8 weights;
            simdgroup_load(weights, scores + pass * MATRIX * KEY_TILE + t * MATRIX, KEY_TILE);
            const simdgroup_half8x8 values = load_values(ring, block, t, column * MATRIX, at);
            simdgroup_multiply_accumulate(output, weights, values, output);
        }
    }
};

// The online softmax of one query, kept by a whole SIMD group: a lane for each of the 32 keys.
struct GroupSoftmax {
    QueryMask mask;
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
    device const ushort *tree_mask      [[buffer(5)]],
    uint2 place                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]]
) {
    threadgroup float queries[MAX_QUERY_ELEMENTS];
    threadgroup float scores[MAX_QUERY_ROWS * KEY_TILE];
    threadgroup float corrections[MAX_QUERY_ROWS];
    static_assert(sizeof(queries) + sizeof(scores) + sizeof(corrections) <= 32768, "threadgroup memory");

    const KeyRing ring = key_ring(K, V, params, place.y);
    const uint head_dim = ring.head_dim;
    const uint first_query = place.x * QUERY_ROWS;
    const uint last_query = params.seq_len - 1;
    const BlockRange range = block_range(params, ring.n_slots, first_query, QUERY_ROWS, tree_mask);
    const QueryBlock shared = { queries, scores, corrections, simd_group, lane };
    const uint n_columns = head_dim / MATRIX;
    const uint columns_per_group = (n_columns + PREFILL_SIMD_GROUPS - 1) / PREFILL_SIMD_GROUPS;
    const uint n_output = QUERY_ROWS / MATRIX * columns_per_group;
    const uint n_rows = QUERY_ROWS / PREFILL_SIMD_GROUPS;

    const float factor = query_factor(params);
    for (uint i = thread_index; i < QUERY_ROWS * head_dim; i += PREFILL_THREADS) {
        const uint query = min(first_query + i / head_dim, last_query);
        queries[i] = Q[query_offset(params, query, place.y) + i % head_dim] * factor;
    }
    simdgroup_float8x8 output[OUTPUT_MATRICES];
    for (uint i = 0; i < n_output; i++) {
        output[i] = make_filled_simdgroup_matrix<float, MATRIX, MATRIX>(0.0f);
    }
    GroupSoftmax rows[ROWS_PER_GROUP];
    for (uint j = 0; j < n_rows; j++) {
        const uint query = min(first_query + simd_group + PREFILL_SIMD_GROUPS * j, last_query);
        rows[j] = { query_mask(params, ring.n_slots, query, tree_mask), LOWEST_SCORE, 0.0f };
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint first = range.begin; first < range.end; first += KEY_TILE) {
        const KeyBlock block = key_block(first, range.end, ring.n_slots);
        shared.multiply_keys(ring, block);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        // A SIMD group takes every fourth row.
        for (uint j = 0; j < n_rows; j++) {
            const uint row = simd_group + PREFILL_SIMD_GROUPS * j;
            float correction;
            scores[row * KEY_TILE + lane] =
                rows[j].weight(scores[row * KEY_TILE + lane], first + lane, correction);
            if (lane == 0) {
                corrections[row] = correction;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        // A SIMD group takes every fourth 8 columns.
        for (uint i = 0; i < n_output; i++) {
            const uint column = shared.column(i, columns_per_group);
            if (column < n_columns) {
                shared.add_values(output[i], shared.pass(i, columns_per_group), column, ring, block);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    for (uint j = 0; j < n_rows; j++) {
        if (lane == 0) {
            corrections[simd_group + PREFILL_SIMD_GROUPS * j] = inverse_sum(rows[j].sum);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const MatrixPlace at = matrix_place(lane);
    for (uint i = 0; i < n_output; i++) {
        const uint row = shared.pass(i, columns_per_group) * MATRIX + at.row;
        const uint column = shared.column(i, columns_per_group);
        const uint query = first_query + row;
        if (column < n_columns && query < params.seq_len) {
            device float *out = O + query_offset(params, query, place.y) + column * MATRIX + at.column;
            const float2 normal = elements(output[i]) * corrections[row];
            out[0] = normal.x;
            out[1] = normal.y;
        }
    }
}
