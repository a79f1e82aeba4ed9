// decode_attention_f16, decode_attention_neox_f16: RoPE, storing of the new key and value, and attention of a row,
// and of several rows that see nothing of each other.
//
//     q' = rope(q),  k' = rope(k);  with FC_HEAD_NORM of q / rms(q) * q_norm and k / rms(k) * k_norm
//     K[slot] = k',  V[slot] = v;  with FC_KEY_CENTRE, which is for 8 bits, K[slot] = k' - centre
//     O[h] = Σ_s softmax(score(q'_h · K[s]))_s V[s],  as floats, or as halves for a product on tensor cores
//
// Scores and pages as in include/attention.h; which keys count in include/attention_mask.h; the products in
// include/tensor_stream.h. The row's slot is the last that it sees. Nobody reads its key and value from memory: they are one
// more stream, of one key, when the streams of the other keys are joined.
//
// Halves need no factor, as those of half_rows.metal do, so that the factor of each row is 1: O is a weighted mean of values, which
// are stored as halves, and so it is at most 65504, and rounding it loses no more than rounding the values did. Values of 8 bits
// can be larger, since their scale is a half; then O is cut off at 65504. The halves lie in tiles (include/half_tile.h), with zeros
// behind the last head.
//
// Launch:  grid (KV heads, n_groups, batches of all rows), 8 SIMD groups, or 4 where a batch has no more heads and there are so many
//          threadgroups that small ones run at once which otherwise would take turns. A batch is up to 8 of the heads that share keys.
//          Each SIMD group is a stream, or two of them where a head has more than 128 elements. Only as many threadgroups take part
//          as have a tile of 16 keys for each stream, but at least one; tiles go to the streams of all of them in turn.
// Memory:  keys and values come from memory once for a batch, and those of the first tiles are under way before the kernel
//          waits for q, k and v. FC_HEAD_DIM must be set: heads are in registers. Where several threadgroups take part, each
//          leaves its part as flash_attention_decode_split_f16 does, and the last to arrive joins them. `arrived` counts: zeros
//          before, and zeros after.

#include <metal_stdlib>
#include <akunu_tensor>

#include "ShaderTypes.h"
#include "include/attention_join.h"
#include "include/half_tile.h"
#include "include/inputs.h"
#include "include/own_heads.h"
#include "include/row_table.h"
#include "include/tensor_stream.h"

using namespace metal;

// Vectors of four floats of all streams: of larger heads there are half as many.
constant constexpr uint STREAM_VECTORS = MOST_SIMD_GROUPS * BATCH_HEADS * PIECE_BLOCKS * BLOCK / 4;
constant constexpr float LARGEST_HALF = 65504.0f;
static_assert(BATCH_HEADS == TENSOR_HEADS && LANE_VECTORS * 128 == MAX_HEAD_DIM, "heads of a matrix, vectors of a head");

inline Batch batch_of(constant DecodeAttentionParams &params, uint kv_head, uint index) {
    const uint n_shared = params.n_heads / params.n_kv_heads;
    const uint begin = index * BATCH_HEADS;
    return { kv_head * n_shared + begin, min(n_shared - begin, BATCH_HEADS), FC_HEAD_DIM / 4 };
}

// The first slot of the first tile.
inline uint tile_begin(RowMask mask) { return mask.begin / TENSOR_TILE * TENSOR_TILE; }

// A lane's four scores, from products; those of keys that do not count are LOWEST_SCORE. Of most tiles all count.
inline float4 tile_scores(float4 products, float factor, RowMask mask, uint first, uint lane) {
    const bool all_count = mask.hidden == 0 && first >= mask.begin && first + TENSOR_TILE <= mask.end;
    float4 scores;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        scores[i] = score(products[i] * factor);
    }
    if (!all_count) {
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            scores[i] = mask.visible(first + score_key(i, lane)) ? scores[i] : LOWEST_SCORE;
        }
    }
    return scores;
}

// A row of O as halves.
struct HalfRow {
    device half *tile;
    device float *factor;
    uint in_tile;
    uint order;

    void store(float4 four, uint vector) const {
        const float4 within = KV_Q8 ? clamp(four, float4(-LARGEST_HALF), float4(LARGEST_HALF)) : four;
        store_four(tile, half4(within), in_tile, vector, order);
    }
};

// Stores a head of a row as halves, and with the last head the zeros behind it and the row's factor. Lanes have its vectors as
// JoinedHead says.
inline void store_halves(JoinedHead joined, uint head, HalfRow row, constant DecodeAttentionParams &params, uint lane) {
    const uint head_vectors = FC_HEAD_DIM / 4;
    const float scale = inverse_sum(joined.sum);
#pragma unroll
    for (uint i = 0; i < LANE_VECTORS; i++) {
        if (lane + 32 * i < head_vectors) {
            row.store(joined.vectors[i] * scale, head * head_vectors + lane + 32 * i);
        }
    }
    if (head + 1 < params.n_heads) {
        return;
    }
    for (uint i = params.n_heads * head_vectors + lane; i < params.half_stride / 4; i += 32) {
        row.store(float4(0.0f), i);
    }
    if (lane == 0) {
        *row.factor = 1.0f;
    }
}

template <typename Style>
kernel void decode_attention(
    device const float *q                       [[buffer(0)]],
    device const float *k                       [[buffer(1)]],
    device const float *v                       [[buffer(2)]],
    device half *K                              [[buffer(3)]],
    device half *V                              [[buffer(4)]],
    constant DecodeAttentionParams &params      [[buffer(5)]],
    device const Row *rows                      [[buffer(6)]],
    device const uint *table                    [[buffer(7)]],
    device const float *freqs                   [[buffer(8)]],
    device const float *q_norm                  [[buffer(9)]],
    device const float *k_norm                  [[buffer(10)]],
    device float *O                             [[buffer(11)]],
    device float *parts                         [[buffer(12)]],  // (rows, n_heads, n_groups, head_dim)
    device float *weights                       [[buffer(13)]],  // (rows, n_heads, n_groups)
    device uint *arrived                        [[buffer(14)]],  // (rows, batches, KV heads)
    device half *halves                         [[buffer(15)]],  // (rows in whole tiles, half_stride), in place of O
    device float *factors                       [[buffer(16)]],  // (rows)
    device const float *centre                  [[buffer(17)]],  // (KV heads, head_dim), read only with FC_KEY_CENTRE
    uint3 place                                 [[threadgroup_position_in_grid]],
    uint thread_index                           [[thread_index_in_threadgroup]],
    uint simd_group                             [[simdgroup_index_in_threadgroup]],
    uint lane                                   [[thread_index_in_simdgroup]]
) {
    threadgroup float4 vectors[STREAM_VECTORS];
    threadgroup uint4 query_vectors[QUERY_VECTORS];
    threadgroup float2 rotations[MAX_PAIRS];
    threadgroup float4 own_value[MAX_HEAD_DIM / 4];
    threadgroup float own_scores[BATCH_HEADS];
    threadgroup float peaks[MOST_SIMD_GROUPS * BATCH_HEADS];
    threadgroup float sums[MOST_SIMD_GROUPS * BATCH_HEADS];
    threadgroup uint n_before;

    const uint head_dim = FC_HEAD_DIM;
    const Pieces pieces = pieces_of(head_dim);
    const uint stream_shift = pieces.are_two ? 1 : 0;
    const uint n_streams = params.n_simd_groups >> stream_shift;
    const uint stream_index = simd_group >> stream_shift;
    const uint piece = pieces.are_two ? simd_group % 2 : 0;
    const uint n_batches = (params.n_heads / params.n_kv_heads + BATCH_HEADS - 1) / BATCH_HEADS;
    const uint row_index = n_batches == 1 ? place.z : place.z / n_batches;
    const uint batch_index = place.z - row_index * n_batches;
    device const Row &row = rows[row_index];
    const RowMask mask = row_mask(row);
    // Without the row's own slot, the last.
    const bool has_own = mask.end > 0;
    const RowMask earlier = { mask.begin, mask.end - (has_own ? 1 : 0), mask.hidden >> 1 };
    const uint n_tiles =
        earlier.end > earlier.begin ? (earlier.end - 1) / TENSOR_TILE - earlier.begin / TENSOR_TILE + 1 : 0;
    const uint tile_shift = (params.n_simd_groups == MOST_SIMD_GROUPS ? 3 : 2) - stream_shift;
    const uint n_parts = clamp((n_tiles + n_streams - 1) >> tile_shift, 1u, params.n_groups);
    if (place.y >= n_parts) {
        return;
    }

    Slots slots = slots_of(table, params, row.sequence, place.x);
    slots.head_dim = head_dim;
    const uint step = TENSOR_TILE * n_parts * n_streams;
    uint first = tile_begin(earlier) + TENSOR_TILE * (place.y * n_streams + stream_index);
    TensorTile tile;
    TensorKeys keys;
    TensorValues values;
    if (first < earlier.end) {
        tile = tensor_tile(slots, first, earlier.end);
        keys.load(K, tile, pieces, 0, lane);
        values.load(V, tile, pieces, piece, lane);
    }
    const bool sees_own = has_own && place.y == 0;
    SlotAt own_slot = { 0, 0 };
    if (sees_own) {
        own_slot = slots.at(row.slot);
    }
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    for (uint pair = thread_index; pair < head_dim / 2; pair += 32 * params.n_simd_groups) {
        const Rotation rotation = frequencies.at(float(row.position), pair);
        rotations[pair] = float2(rotation.cosine, rotation.sine);
    }
    const Batch batch = batch_of(params, place.x, batch_index);
    inputs_are_ready();

    const uint first_head = row_index * params.n_heads;
    const uint own_kv = (row_index * params.n_kv_heads + place.x) * head_dim;
    const OwnHeads own = {
        q + (first_head + batch.first_head + min(simd_group, batch.n_heads - 1)) * head_dim, k + own_kv, v + own_kv,
        centre + place.x * head_dim, K, V, own_slot, sees_own && batch_index == 0 && simd_group == 0,
    };
    const OwnPlaces own_places = { query_vectors, own_scores, own_value };
    prepare_heads<Style>(
        own, q_norm, k_norm, params, rotations, own_places, simd_group, simd_group < batch.n_heads,
        team_lane(lane, head_dim)
    );
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const TensorQueries queries = { query_vectors };
    const float factor = query_factor(params);
    TensorStream stream;
    stream.clear();
    bool has_tile = first < earlier.end;
    while (has_tile) {
        float4 products = keys.products(queries, pieces, 0, lane);
        if (pieces.are_two) {
            keys.load(K, tile, pieces, 1, lane);
            products += keys.products(queries, pieces, 1, lane);
        }
        stream.add(tile_scores(products, factor, earlier, first, lane), values, pieces);
        first += step;
        has_tile = first < earlier.end;
        if (!has_tile) {
            break;
        }
        tile = tensor_tile(slots, first, earlier.end);
        keys.load(K, tile, pieces, 0, lane);
        values.load(V, tile, pieces, piece, lane);
    }

    stream.leave(vectors, peaks, sums, pieces, piece, uint2(stream_index, batch.n_heads), lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const bool has_head = simd_group < batch.n_heads;
    const uint head = batch.first_head + simd_group;
    JoinedHead joined;
    if (has_head) {
        const Streams streams = { peaks, sums, vectors, own_scores, own_value, n_streams, sees_own };
        joined = streams.join(simd_group, batch, lane);
    }
    if (n_parts > 1) {
        if (has_head) {
            const uint part = (first_head + head) * params.n_groups + place.y;
            device float4 *to = (device float4 *)parts + part * batch.head_vectors;
            joined.store(to, inverse_sum(joined.sum), lane, batch.head_vectors);
            if (lane == 0) {
                weights[part] = joined.sum > 0.0f ? joined.peak + log2(joined.sum) : -INFINITY;
            }
        }
        device uint *counter = arrived + place.z * params.n_kv_heads + place.x;
        if (!are_all_there(counter, &n_before, n_parts, thread_index)) {
            return;
        }
        if (thread_index == 0) {
            *counter = 0;
        }
        const Parts left = {
            (device const float4 *)parts + first_head * params.n_groups * batch.head_vectors,
            weights + first_head * params.n_groups, n_parts,
        };
        joined = join_batch(left, params.n_groups, batch, vectors, params.n_simd_groups, simd_group, lane);
    }
    if (!has_head) {
        return;
    }
    if (params.order == IN_ROWS) {
        device float4 *to = (device float4 *)O + (first_head + head) * batch.head_vectors;
        joined.store(to, inverse_sum(joined.sum), lane, batch.head_vectors);
        return;
    }
    const uint in_tile = row_index % 8;
    const HalfRow half_row = {
        halves + (row_index - in_tile) * params.half_stride, factors + row_index, in_tile, params.order,
    };
    store_halves(joined, head, half_row, params, lane);
}

typedef decltype(decode_attention<Interleaved>) decode_attention_t;

template [[host_name("decode_attention_f16")]] kernel decode_attention_t decode_attention<Interleaved>;
template [[host_name("decode_attention_neox_f16")]] kernel decode_attention_t decode_attention<SplitHalves>;
