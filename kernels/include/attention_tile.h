// Tiles of the prefill kernels: 32 keys at a time, in 8×8 SIMD group matrices.
#pragma once

#include <metal_stdlib>

#include "include/attention.h"

using namespace metal;

constant constexpr uint MATRIX = 8;
constant constexpr uint KEY_TILE = 32;
constant constexpr uint KEY_MATRICES = KEY_TILE / MATRIX;
constant constexpr uint PREFILL_SIMD_GROUPS = 4;
constant constexpr uint PREFILL_THREADS = 128;

// Which two neighbours of a SIMD group matrix a lane holds.
struct MatrixPlace {
    uint row;
    uint column;  // and the next one
};

inline MatrixPlace matrix_place(uint lane) {
    return { lane / 2 % 4 + lane / 16 * 4, lane % 2 * 2 + lane / 8 % 2 * 4 };
}

// The lane's two elements of a matrix.
inline thread float2 &elements(thread simdgroup_float8x8 &matrix) {
    return reinterpret_cast<thread float2 &>(matrix.thread_elements());
}

inline thread half2 &elements(thread simdgroup_half8x8 &matrix) {
    return reinterpret_cast<thread half2 &>(matrix.thread_elements());
}

// The reduction of a row over the four lanes that hold it: they differ in bits 0 and 3.
inline float row_max(float value) {
    value = max(value, simd_shuffle_xor(value, 1));
    return max(value, simd_shuffle_xor(value, 8));
}

inline float row_sum(float value) {
    value += simd_shuffle_xor(value, 1);
    return value + simd_shuffle_xor(value, 8);
}

// The keys that some query of a block of queries sees.
struct BlockRange {
    uint begin;
    uint end;
};

// Bounds rise with the query: the first one's begin and the last one's end.
inline BlockRange block_range(
    constant AttentionParams &params, uint n_slots, uint first_query, uint n_queries,
    device const ushort *tree_mask
) {
    const uint last_query = min(first_query + n_queries, params.seq_len) - 1;
    return {
        query_mask(params, n_slots, first_query, tree_mask).begin,
        query_mask(params, n_slots, last_query, tree_mask).end,
    };
}

// Up to 32 consecutive keys and where they lie in the ring.
struct KeyBlock {
    uint first;
    uint n_keys;
    uint first_slot;
    uint n_slots;

    // The slot of key i of the block; beyond its end, that of its last key.
    uint slot(uint i) const {
        const uint next = first_slot + min(i, n_keys - 1);
        return next >= n_slots ? next - n_slots : next;
    }

    // Whether there are 32 keys in consecutive slots.
    bool is_whole() const { return n_keys == KEY_TILE && first_slot + KEY_TILE <= n_slots; }
};

inline KeyBlock key_block(uint first, uint end, uint n_slots) {
    return { first, min(KEY_TILE, end - first), first % n_slots, n_slots };
}
