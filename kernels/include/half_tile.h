// Where rows of halves lie that tensor cores read.
//
// In tiles, eight rows lie where they would lie one behind the other, and in the order in which tensor cores want them: 128
// elements of eight rows are 128 vectors of eight. In spans (include/decode_gemm.h), element i of a row is number i % 8 of vector
// 32 * (i / 8 % 4) + 4 * (r % 8) + i / 32 % 4; in columns (include/async_gemm.h), number 2 * (i / 32 % 4) + i % 2 of vector
// 8 * (i % 32 / 2) + r % 8.
#pragma once

#include <metal_stdlib>

using namespace metal;

// How rows lie: one behind the other, or in tiles.
constant constexpr uint IN_ROWS = 0;
constant constexpr uint IN_SPANS = 1;
constant constexpr uint IN_COLUMNS = 2;

// Where the elements i and i + 1 of row r of a tile lie; i is even.
inline uint place_in_tile(uint r, uint i, uint order) {
    const uint span = i / 32 % 4;
    const uint in_block = order == IN_SPANS ? (i / 8 % 4 * 32 + r * 4 + span) * 8 + i % 8 : (i % 32 / 2 * 8 + r) * 8 + 2 * span;
    return i / 128 * 1024 + in_block;
}

// Stores vector i of a row.
inline void store_four(device half *to, half4 four, uint in_tile, uint i, uint order) {
    if (order == IN_COLUMNS) {
        *(device half2 *)(to + place_in_tile(in_tile, 4 * i, order)) = four.xy;
        *(device half2 *)(to + place_in_tile(in_tile, 4 * i + 2, order)) = four.zw;
    } else {
        *(device half4 *)(to + (order == IN_SPANS ? place_in_tile(in_tile, 4 * i, order) : 4 * i)) = four;
    }
}
