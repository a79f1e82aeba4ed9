// Tiles of the prefill kernels: the rows of one sequence, 32 keys at a time, in 8×8 SIMD group matrices.
#pragma once

#include <metal_stdlib>

#include "include/attention.h"

using namespace metal;

constant constexpr uint MATRIX = 8;
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

// The rows of one threadgroup: up to 32 of one sequence.
struct RowBlock {
    uint first;  // the first of them in the row table
    uint last;   // the last of the launch

    // Row i of the block; beyond the launch, its last one again.
    uint row(uint i) const { return min(first + i, last); }
};

inline RowBlock row_block(constant AttentionParams &params, uint block, uint n_rows) {
    return { params.first_row + block * n_rows, params.first_row + params.n_rows - 1 };
}

// The tiles that some row of a block sees: of begin .. end, those from begin on.
struct TileRange {
    uint begin;
    uint end;
};

// Lane i asks row i. All lanes must call it.
inline TileRange tile_range(device const Row *rows, RowBlock block, uint n_rows, uint lane) {
    const RowMask mask = row_mask(rows[block.row(min(lane, n_rows - 1))]);
    const uint begin = mask.end == 0 ? 0xFFFFFFFFu : mask.begin;
    return { tile_of(simd_min(begin)), simd_max(mask.end) };
}

// The keys, or values, of a tile: up to 32 slots of one page.
struct KeyTile {
    SlotAt first;  // where the first slot lies in the pool
    uint n_keys;
    uint head_dim;

    // Where slot i of the tile lies; beyond its end, where its last one does.
    SlotAt at(uint i) const { return first.after(min(i, n_keys - 1), head_dim); }

    bool is_whole() const { return n_keys == KEY_TILE; }
};

inline KeyTile key_tile(Keys keys, uint first, uint end) {
    return { keys.slots.at(first), min(KEY_TILE, end - first), keys.slots.head_dim };
}
