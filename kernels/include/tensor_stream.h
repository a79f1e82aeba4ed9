// An online softmax of up to 8 heads over the keys that they share, on NVIDIA's tensor cores. A SIMD group takes 16 keys at a
// time, and nothing of them goes through threadgroup memory.
//
//     S = Q Kᵀ      Q: 8 heads and what rounding them to halves has lost, another 8 rows; S is the sum of both
//     O += P V      P = 2^(S - peak), the same way
//
// so that a product loses no more than one of floats. Lane l is in row g = l / 4 of a matrix and in place t = l % 4 (see
// <akunu_tensor>). A sum over the elements of a head may take them in any order, and so may the columns of O; this one needs
// no exchange between lanes, in blocks of 32 elements:
//
//     Q, K   a lane has elements 8 t .. 8 t + 7 of head g, and of keys g and g + 8
//     V      elements 4 g .. 4 g + 3 of the keys 2 t, 2 t + 1, 2 t + 8, 2 t + 9, which are also the keys of its scores
//     O      elements 8 t .. 8 t + 7 of head g
//
// Pages of 8 bits are multiplied as whole numbers, which are exact in halves. Scores are multiplied by the scales of their
// keys, block by block, and so are weights before they are rounded.
#pragma once

#include <akunu_tensor>

#include "include/attention.h"
#include "include/tensor_row.h"

using namespace metal;

constant constexpr uint TENSOR_HEADS = 8;
constant constexpr uint TENSOR_TILE = 16;
// Elements of a block: they share a scale.
constant constexpr uint BLOCK = Q8_BLOCK;
// Blocks of keys, and of values, that a SIMD group holds at once. A larger head has two pieces: its keys come one after the other,
// and of its values and outputs a SIMD group has one.
constant constexpr uint PIECE_BLOCKS = 4;
constant constexpr uint MAX_BLOCKS = 2 * PIECE_BLOCKS;
// Vectors of the queries of all heads: two of each lane in each block.
constant constexpr uint QUERY_VECTORS = 2 * MAX_BLOCKS * 32;
// Weights are at most 2^6, so that fewer of them are too small for a half. Times the largest scale, 65504 / 127, that is one.
constant constexpr float HEADROOM = 6.0f;

// Four bytes with a sign as halves: 1024 + x + 128 has x + 128 in its low byte.
inline uint2 widen_bytes(uint bytes) {
    const uint shifted = bytes ^ 0x80808080u;
    const half2 low = as_type<half2>(nvidia::permute(shifted, 0x64646464u, 0x4140u)) - half2(1152.0h);
    const half2 high = as_type<half2>(nvidia::permute(shifted, 0x64646464u, 0x4342u)) - half2(1152.0h);
    return uint2(as_type<uint>(low), as_type<uint>(high));
}

// How a head is cut. Nothing is divided by what a function constant says: such a division would not be folded.
struct Pieces {
    bool are_two;
    uint n_blocks;  // of a piece

    uint first_block(uint piece) const { return piece == 0 ? 0 : n_blocks; }
};

inline Pieces pieces_of(uint head_dim) {
    const bool are_two = head_dim > PIECE_BLOCKS * BLOCK;
    return { are_two, are_two ? head_dim / (2 * BLOCK) : head_dim / BLOCK };
}

// Queries in threadgroup memory, as matrices take them: vector (2 * block + h) * 32 + lane has elements 4 h, 4 h + 1 of a lane's
// eight, what rounding these has lost, and the same of the next two.
struct TensorQueries {
    threadgroup const uint4 *vectors;
};

// Where the keys of a tile lie. Slots from `end` on are not read: the last one before is, again.
struct TensorTile {
    SlotAt at;
    uint last;
    uint head_dim;

    SlotAt slot(uint key) const { return at.after(min(key, last), head_dim); }
};

inline TensorTile tensor_tile(Slots slots, uint first, uint end) {
    return { slots.at(first), min(TENSOR_TILE, end - first) - 1, slots.head_dim };
}

// The i-th of a lane's four keys.
inline uint score_key(uint i, uint lane) { return 2 * (lane % 4) + i % 2 + i / 2 * 8; }

// The scales of a lane's four keys, or values, in the blocks of a piece, where pages have any.
inline void load_scales(
    thread half (&scales)[4][PIECE_BLOCKS], device const half *pool, TensorTile tile, Pieces pieces, uint piece, uint lane
) {
#pragma unroll
    for (uint i = 0; i < 4; i++) {
#pragma unroll
        for (uint b = 0; b < PIECE_BLOCKS; b++) {
            if (KV_Q8 && b < pieces.n_blocks) {
                scales[i][b] = pool[tile.slot(score_key(i, lane)).scales + pieces.first_block(piece) + b];
            }
        }
    }
}

// A piece of 16 keys, as they are stored.
struct TensorKeys {
    uint4 words[2][PIECE_BLOCKS];
    half scales[4][PIECE_BLOCKS];

    void load(device const half *pool, TensorTile tile, Pieces pieces, uint piece, uint lane) {
        const uint first = pieces.first_block(piece);
#pragma unroll
        for (uint n = 0; n < 2; n++) {
            const SlotAt from = tile.slot(8 * n + lane / 4);
#pragma unroll
            for (uint b = 0; b < PIECE_BLOCKS; b++) {
                if (b < pieces.n_blocks) {
                    const ulong number = from.numbers + (first + b) * BLOCK + 8 * (lane % 4);
                    words[n][b] = KV_Q8
                        ? uint4(*(device const uint2 *)((device const char *)pool + number), 0, 0)
                        : *(device const uint4 *)(pool + number);
                }
            }
        }
        load_scales(scales, pool, tile, pieces, piece, lane);
    }

    // The eight elements of a lane, as halves.
    uint4 halves(uint n, uint b) const {
        return KV_Q8 ? uint4(widen_bytes(words[n][b].x), widen_bytes(words[n][b].y)) : words[n][b];
    }

    // The products of a lane's four keys with head g. All lanes must call it.
    float4 products(TensorQueries queries, Pieces pieces, uint piece, uint lane) const {
        float4 sums = float4(0.0f);
#pragma unroll
        for (uint b = 0; b < PIECE_BLOCKS; b++) {
            if (b < pieces.n_blocks) {
                const uint vector = (pieces.first_block(piece) + b) * 64 + lane;
                const uint4 first = queries.vectors[vector];
                const uint4 second = queries.vectors[vector + 32];
                const uint4 low = halves(0, b);
                const uint4 high = halves(1, b);
                float4 c = nvidia::multiply_accumulate(first, low.xy, float4(0.0f));
                float4 d = nvidia::multiply_accumulate(first, high.xy, float4(0.0f));
                c = nvidia::multiply_accumulate(second, low.zw, c);
                d = nvidia::multiply_accumulate(second, high.zw, d);
                const float4 block = float4(c.xy + c.zw, d.xy + d.zw);
                sums += KV_Q8 ? block * float4(scales[0][b], scales[1][b], scales[2][b], scales[3][b]) : block;
            }
        }
        return sums;
    }
};

// A piece of 16 values, as they are stored.
struct TensorValues {
    uint2 words[4][PIECE_BLOCKS];
    half scales[4][PIECE_BLOCKS];

    void load(device const half *pool, TensorTile tile, Pieces pieces, uint piece, uint lane) {
        const uint first = pieces.first_block(piece);
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            const SlotAt from = tile.slot(score_key(i, lane));
#pragma unroll
            for (uint b = 0; b < PIECE_BLOCKS; b++) {
                if (b < pieces.n_blocks) {
                    const ulong number = from.numbers + (first + b) * BLOCK + 4 * (lane / 4);
                    words[i][b] = KV_Q8
                        ? uint2(*(device const uint *)((device const char *)pool + number), 0)
                        : *(device const uint2 *)(pool + number);
                }
            }
        }
        load_scales(scales, pool, tile, pieces, piece, lane);
    }

    // The four elements of a lane's i-th key, as halves.
    uint2 halves(uint i, uint b) const { return KV_Q8 ? widen_bytes(words[i][b].x) : words[i][b]; }

    // A lane's weights in the matrix of block b: those of head g, and what rounding has lost.
    uint4 weights(float4 weights, uint b) const {
        const float4 w = KV_Q8 ? weights * float4(scales[0][b], scales[1][b], scales[2][b], scales[3][b]) : weights;
        return uint4(pack(w.xy), pack_rest(w.xy), pack(w.zw), pack_rest(w.zw));
    }
};

// The softmax so far of head g, and a piece of its output.
struct TensorStream {
    float peak;
    float sum;  // over the lane's keys; quad_row_sum makes it that of all
    float4 outputs[2 * PIECE_BLOCKS];

    void clear() {
        peak = LOWEST_SCORE;
        sum = 0.0f;
#pragma unroll
        for (uint i = 0; i < 2 * PIECE_BLOCKS; i++) {
            outputs[i] = float4(0.0f);
        }
    }

    // Adds the values of 16 keys, by the scores of a lane's four. A score of LOWEST_SCORE adds nothing. All lanes must call it.
    void add(float4 scores, thread const TensorValues &values, Pieces pieces) {
        const float largest = quad_row_max(max(max(scores.x, scores.y), max(scores.z, scores.w)));
        const float new_peak = max(peak, largest - HEADROOM);
        const float correction = fast::exp2(peak - new_peak);
        peak = new_peak;
        float4 weights;
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            weights[i] = scores[i] == LOWEST_SCORE ? 0.0f : fast::exp2(scores[i] - peak);
        }
        sum = sum * correction + ((weights.x + weights.y) + (weights.z + weights.w));
#pragma unroll
        for (uint b = 0; b < PIECE_BLOCKS; b++) {
            if (b < pieces.n_blocks) {
                const uint4 left = values.weights(weights, b);
                const uint2 v0 = values.halves(0, b);
                const uint2 v1 = values.halves(1, b);
                const uint2 v2 = values.halves(2, b);
                const uint2 v3 = values.halves(3, b);
#pragma unroll
                for (uint j = 0; j < 4; j++) {
                    const uint which = j % 2 == 0 ? 0x5410u : 0x7632u;
                    const uint2 right = uint2(
                        nvidia::permute(v0[j / 2], v1[j / 2], which), nvidia::permute(v2[j / 2], v3[j / 2], which)
                    );
                    const float4 c = nvidia::multiply_accumulate(left, right, float4(0.0f));
                    outputs[2 * b][j] = outputs[2 * b][j] * correction + (c.x + c.z);
                    outputs[2 * b + 1][j] = outputs[2 * b + 1][j] * correction + (c.y + c.w);
                }
            }
        }
    }

    // Leaves it in threadgroup memory, as stream at.x, of at.y heads: peaks and sums (streams, TENSOR_HEADS), vectors (streams,
    // heads, vectors of a head). All lanes must call it.
    void leave(
        threadgroup float4 *vectors, threadgroup float *peaks, threadgroup float *sums, Pieces pieces, uint piece, uint2 at,
        uint lane
    ) const {
        const uint head = lane / 4;
        const float all = quad_row_sum(sum);
        if (head >= at.y) {
            return;
        }
        const uint head_vectors = pieces.n_blocks * (pieces.are_two ? 2 : 1) * (BLOCK / 4);
        const uint first = (at.x * at.y + head) * head_vectors + pieces.first_block(piece) * (BLOCK / 4) + lane % 4 * 2;
#pragma unroll
        for (uint b = 0; b < PIECE_BLOCKS; b++) {
            if (b < pieces.n_blocks) {
                vectors[first + b * (BLOCK / 4)] = outputs[2 * b];
                vectors[first + b * (BLOCK / 4) + 1] = outputs[2 * b + 1];
            }
        }
        if (lane % 4 == 0 && piece == 0) {
            peaks[at.x * TENSOR_HEADS + head] = peak;
            sums[at.x * TENSOR_HEADS + head] = all;
        }
    }
};
