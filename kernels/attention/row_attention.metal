// row_attention_f32, row_attention_bias_f32, cross_attention_f16: attention of each row over rows of K and V.
//
//     O[r][h] = Σ_k softmax_k(scale * Q[r][h] · K[k][h / group] + bias[h][r - k]) V[k][h / group]
//
// Without n_keys, a row of a text sees the rows of that text: `length` rows, of which it is number `position`; with a
// reach, only those that are not further away. Where there is a bias, a distance beyond its reach has its last entry.
// With n_keys, K and V have n_keys rows for each sequence, and a row sees all of its own; they are halves there. An idle
// row sees none and gives zeros.
//
// Launch:  one SIMD group (32 threads) for each row (x) and head (y).
// Memory:  q is held in registers. Each key and value is read once, four numbers at a time; four teams of 8 lanes take a key each,
//          and 32 keys share one step of the online softmax. No barrier.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

constant constexpr uint TEAM_LANES = 8;
constant constexpr uint N_TEAMS = 4;
constant constexpr uint BLOCK_KEYS = 32;
constant constexpr uint CHUNK = 4 * TEAM_LANES;
constant constexpr uint MAX_CHUNKS = 256 / CHUNK;

// Smaller than any score, and finite: differences of two are not NaN.
constant constexpr float LOWEST = -1e38f;

// The rows of K and V that a row sees: the first, and how many.
inline uint2 seen_rows(device const Row &row, uint at, constant RowAttentionParams &params) {
    if (!is_active(row)) {
        return uint2(0, 0);
    }
    if (params.n_keys != 0) {
        return uint2(row.sequence * params.n_keys, params.n_keys);
    }
    const uint reach = params.reach == 0 ? row.length : params.reach;
    const uint before = min(row.position, reach);
    const uint behind = min(row.length - 1 - row.position, reach);
    return uint2(at - before, before + 1 + behind);
}

// What is added to a score, in units of log2(e).
struct NoBias {
    float of(uint) const { return 0.0f; }
};

struct DistanceBias {
    // Of a head, from the entry of distance 0 on.
    device const float *entries;
    uint at;
    int reach;

    float of(uint key) const { return entries[clamp(int(at - key), -reach, reach)] * M_LOG2E_F; }
};

inline float4 four(device const float *numbers) { return *(device const float4 *)numbers; }
inline float4 four(device const half *numbers) { return float4(*(device const half4 *)numbers); }

// T is float or half.
template <typename T, typename Bias>
inline void attend(
    device const float *Q, device const T *K, device const T *V, device float *O,
    constant RowAttentionParams &params, device const Row *rows, Bias bias, uint2 place, uint lane
) {
    const uint head_dim = params.head_dim;
    const uint team = lane / TEAM_LANES;
    const uint element = 4 * (lane % TEAM_LANES);
    const uint2 seen = seen_rows(rows[place.x], place.x, params);
    const uint kv_head = place.y / (params.n_heads / params.n_kv_heads);
    const ulong kv_stride = ulong(params.n_kv_heads) * head_dim;
    const ulong first_key = seen.x * kv_stride + kv_head * head_dim;
    const ulong offset = (ulong(place.x) * params.n_heads + place.y) * head_dim;

    float4 query[MAX_CHUNKS];
    float4 sums[MAX_CHUNKS];
    // Loops over chunks go to the most that there can be, so that chunks are indexed by constants and stay in registers.
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        const uint at = c * CHUNK + element;
        // Scores are in units of log2(e), so that the exponential is exp2.
        query[c] = at < head_dim
            ? *(device const float4 *)(Q + offset + at) * (params.scale * M_LOG2E_F)
            : float4(0.0f);
        sums[c] = float4(0.0f);
    }
    float peak = LOWEST;
    float weight_sum = 0.0f;
    for (uint first = 0; first < seen.y; first += BLOCK_KEYS) {
        // Lane l keeps the score of key 4 * (l % 8) + l / 8 of the block.
        float mine = LOWEST;
        for (uint step = 0; step < BLOCK_KEYS / N_TEAMS; step++) {
            const uint key = first + step * N_TEAMS + team;
            // A team beyond the end reads the last key again and drops it.
            device const T *k = K + first_key + min(key, seen.y - 1) * kv_stride + element;
            float4 products = float4(0.0f);
#pragma unroll
            for (uint c = 0; c < MAX_CHUNKS; c++) {
                if (c * CHUNK + element < head_dim) {
                    products += query[c] * four(k + c * CHUNK);
                }
            }
            float score = (products.x + products.y) + (products.z + products.w);
            score += simd_shuffle_xor(score, 1);
            score += simd_shuffle_xor(score, 2);
            score += simd_shuffle_xor(score, 4);
            if (lane % TEAM_LANES == step && key < seen.y) {
                mine = score + bias.of(seen.x + key);
            }
        }
        const float new_peak = max(peak, simd_max(mine));
        const float correction = fast::exp2(peak - new_peak);
        const float weight = mine == LOWEST ? 0.0f : fast::exp2(mine - new_peak);
        peak = new_peak;
        weight_sum = weight_sum * correction + simd_sum(weight);
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            sums[c] *= correction;
        }
        for (uint step = 0; step < BLOCK_KEYS / N_TEAMS; step++) {
            const float of_key = simd_shuffle(weight, team * TEAM_LANES + step);
            const uint key = min(first + step * N_TEAMS + team, seen.y - 1);
            device const T *v = V + first_key + key * kv_stride + element;
#pragma unroll
            for (uint c = 0; c < MAX_CHUNKS; c++) {
                if (c * CHUNK + element < head_dim) {
                    sums[c] += of_key * four(v + c * CHUNK);
                }
            }
        }
    }
    const float inverse = weight_sum > 0.0f ? 1.0f / weight_sum : 0.0f;
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        sums[c] += simd_shuffle_xor(sums[c], 8);
        sums[c] += simd_shuffle_xor(sums[c], 16);
        const uint at = c * CHUNK + element;
        if (team == 0 && at < head_dim) {
            *(device float4 *)(O + offset + at) = sums[c] * inverse;
        }
    }
}

kernel void row_attention_f32(
    device const float *Q                 [[buffer(0)]],
    device const float *K                 [[buffer(1)]],
    device const float *V                 [[buffer(2)]],
    device float *O                       [[buffer(3)]],
    constant RowAttentionParams &params   [[buffer(4)]],
    device const Row *rows                [[buffer(5)]],
    uint2 place                           [[threadgroup_position_in_grid]],
    uint lane                             [[thread_index_in_simdgroup]]
) {
    attend(Q, K, V, O, params, rows, NoBias{}, place, lane);
}

kernel void row_attention_bias_f32(
    device const float *Q                 [[buffer(0)]],
    device const float *K                 [[buffer(1)]],
    device const float *V                 [[buffer(2)]],
    device float *O                       [[buffer(3)]],
    constant RowAttentionParams &params   [[buffer(4)]],
    device const Row *rows                [[buffer(5)]],
    device const float *bias              [[buffer(6)]],
    uint2 place                           [[threadgroup_position_in_grid]],
    uint lane                             [[thread_index_in_simdgroup]]
) {
    const uint n_entries = 2 * params.bias_reach + 1;
    device const float *entries = bias + place.y * n_entries + params.bias_reach;
    const DistanceBias of_head = {entries, place.x, int(params.bias_reach)};
    attend(Q, K, V, O, params, rows, of_head, place, lane);
}

kernel void cross_attention_f16(
    device const float *Q                 [[buffer(0)]],
    device const half *K                  [[buffer(1)]],
    device const half *V                  [[buffer(2)]],
    device float *O                       [[buffer(3)]],
    constant RowAttentionParams &params   [[buffer(4)]],
    device const Row *rows                [[buffer(5)]],
    uint2 place                           [[threadgroup_position_in_grid]],
    uint lane                             [[thread_index_in_simdgroup]]
) {
    attend(Q, K, V, O, params, rows, NoBias{}, place, lane);
}
