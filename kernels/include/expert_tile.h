// Tiles of results of one expert, as experts/sort_experts.metal writes them.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

// Expert, first place in the order of the results, and count.
constant constexpr uint TILE_WORDS = 3;

struct ExpertTile {
    uint expert;
    uint first;
    uint count;
};

// One of the tiles, which has at most `most` results, and none behind the last.
inline ExpertTile expert_tile(device const uint *tiles, uint index, uint most, constant ExpertParams &params) {
    device const uint *of = tiles + ulong(index) * TILE_WORDS;
    const uint n_results = params.n_rows * params.n_used;
    const uint first = min(of[1], n_results);
    return { min(of[0], params.n_experts - 1), first, min(min(of[2], most), n_results - first) };
}

// The result at a place of a tile; behind its last one that again.
inline uint result_at(device const uint *order, ExpertTile tile, uint place, constant ExpertParams &params) {
    return min(order[tile.first + min(place, tile.count - 1)], params.n_rows * params.n_used - 1);
}

// The row of x that a result is computed from: of gate and up that of its row, of down its own.
inline uint row_of_result(uint result, constant ExpertParams &params) {
    return params.is_gated != 0 ? result / params.n_used : result;
}
