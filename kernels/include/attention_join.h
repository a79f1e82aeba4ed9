// Joining what several streams have seen of the keys: those of a threadgroup, and those of several threadgroups.
//
//     peak = max_s peak_s,  sum = Σ_s 2^(peak_s - peak) sum_s,  O = Σ_s 2^(peak_s - peak) O_s / sum
//
// A SIMD group takes a head, a lane every 32nd of its vectors of four elements.
#pragma once

#include "include/arrive.h"
#include "include/attention.h"

using namespace metal;

// SIMD groups of a threadgroup, and so streams, at most.
constant constexpr uint MOST_SIMD_GROUPS = 8;
// Heads of a threadgroup at most.
constant constexpr uint BATCH_HEADS = 8;
// Vectors of a head that a lane has at most.
constant constexpr uint LANE_VECTORS = 2;
// Parts that a lane has under way at once.
constant constexpr uint PARTS_AT_ONCE = 8;

// The heads of a threadgroup. They share their keys.
struct Batch {
    uint first_head;
    uint n_heads;
    uint head_vectors;  // vectors of a head
};

// A lane's share of a head: its softmax over some keys, and vectors of its output from `first` on, 32 apart.
struct JoinedHead {
    float peak;
    float sum;
    float4 vectors[LANE_VECTORS];

    template <typename To>
    void store(To to, float factor, uint first, uint head_vectors) const {
#pragma unroll
        for (uint i = 0; i < LANE_VECTORS; i++) {
            if (first + 32 * i < head_vectors) {
                to[first + 32 * i] = vectors[i] * factor;
            }
        }
    }
};

// The streams of a threadgroup, and as one more of them the row's own key and value, if they are seen here.
struct Streams {
    threadgroup const float *peaks;     // (streams, BATCH_HEADS)
    threadgroup const float *sums;      // (streams, BATCH_HEADS)
    threadgroup const float4 *vectors;  // (streams, heads of the batch, vectors of a head)
    threadgroup const float *own_scores;
    threadgroup const float4 *own_value;
    uint n_streams;
    bool sees_own;

    JoinedHead join(uint head, Batch batch, uint lane) const {
        const float own_score = sees_own ? own_scores[head] : LOWEST_SCORE;
        float factors[MOST_SIMD_GROUPS];
        JoinedHead joined;
        joined.peak = own_score;
#pragma unroll
        for (uint s = 0; s < MOST_SIMD_GROUPS; s++) {
            factors[s] = s < n_streams ? peaks[s * BATCH_HEADS + head] : LOWEST_SCORE;
            joined.peak = max(joined.peak, factors[s]);
        }
        const float own_weight = sees_own ? fast::exp2(own_score - joined.peak) : 0.0f;
        joined.sum = own_weight;
#pragma unroll
        for (uint s = 0; s < MOST_SIMD_GROUPS; s++) {
            if (s < n_streams) {
                factors[s] = fast::exp2(factors[s] - joined.peak);
                joined.sum += factors[s] * sums[s * BATCH_HEADS + head];
            }
        }
#pragma unroll
        for (uint i = 0; i < LANE_VECTORS; i++) {
            const uint vector = lane + 32 * i;
            joined.vectors[i] = float4(0.0f);
            if (vector < batch.head_vectors) {
                joined.vectors[i] = sees_own ? own_weight * own_value[vector] : float4(0.0f);
#pragma unroll
                for (uint s = 0; s < MOST_SIMD_GROUPS; s++) {
                    if (s < n_streams) {
                        joined.vectors[i] +=
                            factors[s] * vectors[(s * batch.n_heads + head) * batch.head_vectors + vector];
                    }
                }
            }
        }
        return joined;
    }
};

// What several threadgroups have left of a head, already divided by its sum; its weight is peak + log2(sum).
struct Parts {
    device const float4 *vectors;  // (n_parts, vectors of a head)
    device const float *weights;   // (n_parts)
    uint n_parts;

    // Every n-th of them, added up; the sum is that of all. Some are under way while weights are compared. All lanes must call
    // it.
    JoinedHead join(uint first_part, uint n, uint first_vector, uint head_vectors, uint lane) const {
        const float low = lane < n_parts ? weights[lane] : -INFINITY;
        const float high = lane + 32 < n_parts ? weights[lane + 32] : -INFINITY;
        JoinedHead joined = { LOWEST_SCORE, 0.0f, { float4(0.0f), float4(0.0f) } };
        for (uint base = 0; base < n_parts; base += PARTS_AT_ONCE * n) {
            float held_weights[PARTS_AT_ONCE];
            float4 held[PARTS_AT_ONCE][LANE_VECTORS];
#pragma unroll
            for (uint p = 0; p < PARTS_AT_ONCE; p++) {
                const uint part = base + first_part + p * n;
                const bool is_there = part < n_parts;
                held_weights[p] = is_there ? weights[part] : -INFINITY;
#pragma unroll
                for (uint i = 0; i < LANE_VECTORS; i++) {
                    const uint vector = first_vector + 32 * i;
                    held[p][i] = is_there && vector < head_vectors ? vectors[part * head_vectors + vector] : float4(0.0f);
                }
            }
            joined.peak = simd_max(max(low, high));
#pragma unroll
            for (uint p = 0; p < PARTS_AT_ONCE; p++) {
                const float factor = fast::exp2(held_weights[p] - joined.peak);
#pragma unroll
                for (uint i = 0; i < LANE_VECTORS; i++) {
                    joined.vectors[i] += factor * held[p][i];
                }
            }
        }
        joined.sum = simd_sum(fast::exp2(low - joined.peak) + fast::exp2(high - joined.peak));
        return joined;
    }
};

// Joins the parts of all heads of a batch; a head of the model has n_groups places for them. With few heads several SIMD groups
// share the parts of one, and of small heads the halves of a SIMD group; what these teams have meets in `shared`. Each SIMD group
// gets the head of its number, if the batch has so many. All threads must call it.
inline JoinedHead join_batch(
    Parts parts, uint n_groups, Batch batch, threadgroup float4 *shared, uint n_simd_groups, uint simd_group, uint lane
) {
    const uint head_shift = batch.n_heads > 4 ? 3 : batch.n_heads > 2 ? 2 : batch.n_heads - 1;
    const bool are_halves = batch.head_vectors <= 16;
    const uint n_teams = (n_simd_groups >> head_shift) * (are_halves ? 2 : 1);
    const uint team = are_halves ? (simd_group >> head_shift) * 2 + lane / 16 : simd_group >> head_shift;
    const uint first_vector = are_halves ? lane % 16 : lane;
    const uint head = simd_group & ((1u << head_shift) - 1);
    // A head that is not there is the last one again, which nobody asks for.
    const uint first_part = (batch.first_head + min(head, batch.n_heads - 1)) * n_groups;
    const Parts of_head = { parts.vectors + first_part * batch.head_vectors, parts.weights + first_part, parts.n_parts };
    const JoinedHead joined = of_head.join(team, n_teams, first_vector, batch.head_vectors, lane);
    joined.store(shared + ((team << head_shift) + head) * batch.head_vectors, 1.0f, first_vector, batch.head_vectors);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd_group >= batch.n_heads) {
        return joined;
    }
    JoinedHead all = joined;
#pragma unroll
    for (uint i = 0; i < LANE_VECTORS; i++) {
        const uint vector = lane + 32 * i;
        all.vectors[i] = float4(0.0f);
        for (uint t = 0; vector < batch.head_vectors && t < n_teams; t++) {
            all.vectors[i] += shared[((t << head_shift) + simd_group) * batch.head_vectors + vector];
        }
    }
    return all;
}
