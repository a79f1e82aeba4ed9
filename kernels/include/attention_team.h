// A SIMD group as four teams of 8 lanes, each with a key of its own.
//
// A head is cut into chunks of 32 elements; lane t of a team holds elements 4t .. 4t + 3 of each chunk,
// so that a team reads a chunk of a key as 64 contiguous bytes (32 in 8 bits) and sums a dot product by 3 shuffles.
// Four keys are under way at once, and no lane waits for another team.
#pragma once

#include <metal_stdlib>

#include "include/attention.h"

using namespace metal;

constant constexpr uint TEAM_LANES = 8;
constant constexpr uint N_TEAMS = 4;
constant constexpr uint CHUNK = 4 * TEAM_LANES;
constant constexpr uint MAX_HEAD_DIM = 256;
constant constexpr uint MAX_CHUNKS = MAX_HEAD_DIM / CHUNK;

// A lane's share of a head: the elements from here on, four of each chunk.
struct TeamLane {
    uint team;
    uint lane;
    uint head_dim;
    uint n_chunks;

    uint element(uint chunk) const { return chunk * CHUNK + 4 * lane; }
    // element(chunk) < head_dim, in a form that is known to compilers where FC_HEAD_DIM is: only a last chunk that is not
    // whole depends on the lane.
    bool holds(uint chunk) const {
        return chunk < n_chunks && (chunk < head_dim / CHUNK || element(chunk) < head_dim);
    }
};

inline TeamLane team_lane(uint simd_lane, uint head_dim) {
    return { simd_lane / TEAM_LANES, simd_lane % TEAM_LANES, head_dim, (head_dim + CHUNK - 1) / CHUNK };
}

// The sum, and the largest, over the lanes of a team. All lanes must call them.
inline float team_sum(float x) {
    x += simd_shuffle_xor(x, 1);
    x += simd_shuffle_xor(x, 2);
    return x + simd_shuffle_xor(x, 4);
}

inline float team_max(float x) {
    x = max(x, simd_shuffle_xor(x, 1));
    x = max(x, simd_shuffle_xor(x, 2));
    return max(x, simd_shuffle_xor(x, 4));
}

// A lane's share of a query, multiplied by its factor.
//
// Loops over chunks go to MAX_CHUNKS and ask whether there are as many: chunks are then indexed by constants and stay in
// registers, and with FC_HEAD_DIM nothing is asked.
struct TeamQuery {
    float4 chunks[MAX_CHUNKS];

    void load(device const float *query, float factor, TeamLane at) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            device const float *q = query + at.element(c);
            chunks[c] = at.holds(c) ? float4(q[0], q[1], q[2], q[3]) * factor : float4(0.0f);
        }
    }

    // The dot product with a key, in every lane of the team. All lanes of the SIMD group must call it.
    float product(device const half *pool, SlotAt key, TeamLane at) const {
        float4 sums = float4(0.0f);
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (at.holds(c)) {
                sums += chunks[c] * load_four(pool, key, at.element(c));
            }
        }
        return team_sum((sums.x + sums.y) + (sums.z + sums.w));
    }
};

// What the elements from MAX_HEAD_DIM on add to a dot product. They are read again for each key: only few models have such heads. All
// lanes of the SIMD group must call it.
inline float product_beyond(
    device const float *query, float factor, device const half *pool, SlotAt key, TeamLane at
) {
    float4 sums = float4(0.0f);
    for (uint c = MAX_CHUNKS; c < at.n_chunks; c++) {
        if (at.holds(c)) {
            device const float *q = query + at.element(c);
            sums += float4(q[0], q[1], q[2], q[3]) * load_four(pool, key, at.element(c));
        }
    }
    return factor * team_sum((sums.x + sums.y) + (sums.z + sums.w));
}

// An online softmax over the keys that a team has seen so far.
struct TeamStream {
    float peak;
    float sum;
    float4 chunks[MAX_CHUNKS];

    void clear() {
        peak = LOWEST_SCORE;
        sum = 0.0f;
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] = float4(0.0f);
        }
    }

    void scale(float factor) {
        sum *= factor;
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] *= factor;
        }
    }

    // Adds two keys and their values. A score of LOWEST_SCORE adds nothing; its value is read all the same.
    void add(float2 scores, device const half *pool, SlotAt first, SlotAt second, TeamLane at) {
        const float new_peak = max(peak, max(scores.x, scores.y));
        const float a = scores.x == LOWEST_SCORE ? 0.0f : fast::exp2(scores.x - new_peak);
        const float b = scores.y == LOWEST_SCORE ? 0.0f : fast::exp2(scores.y - new_peak);
        const float correction = fast::exp2(peak - new_peak);
        peak = new_peak;
        sum = sum * correction + (a + b);
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (at.holds(c)) {
                const float4 values = a * load_four(pool, first, at.element(c));
                chunks[c] = chunks[c] * correction + (values + b * load_four(pool, second, at.element(c)));
            }
        }
    }

    // Makes one stream of the four of a SIMD group, in every team. All lanes must call it.
    void join_teams() {
        float joint = max(peak, simd_shuffle_xor(peak, 8));
        joint = max(joint, simd_shuffle_xor(joint, 16));
        scale(fast::exp2(peak - joint));
        peak = joint;
        sum += simd_shuffle_xor(sum, 8);
        sum += simd_shuffle_xor(sum, 16);
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] += simd_shuffle_xor(chunks[c], 8);
            chunks[c] += simd_shuffle_xor(chunks[c], 16);
        }
    }
};

// Streams the visible keys of a row that fall to one SIMD group: of every group.y tiles, one. A team takes two keys at a
// time. All lanes must call it.
inline void stream_keys(
    thread TeamStream &stream, thread const TeamQuery &query, Keys keys, RowMask mask, TeamLane at,
    uint2 group
) {
    const uint step = KEY_TILE * group.y;
    for (uint first = tile_of(mask.begin) + KEY_TILE * group.x; first < mask.end; first += step) {
        const SlotAt tile = keys.slots.at(first);
        const uint end = min(first + KEY_TILE, mask.end);
        for (uint slot = max(first, mask.begin); slot < end; slot += 2 * N_TEAMS) {
            // A team beyond the end reads the last key again and drops it.
            const uint2 wanted = uint2(slot + at.team, slot + N_TEAMS + at.team);
            const uint2 mine = min(wanted, uint2(end - 1));
            const SlotAt a = tile.after(mine.x - first, keys.slots.head_dim);
            const SlotAt b = tile.after(mine.y - first, keys.slots.head_dim);
            const float2 products = float2(query.product(keys.k, a, at), query.product(keys.k, b, at));
            const float2 scores = float2(
                wanted.x < end && mask.visible(mine.x) ? score(products.x) : LOWEST_SCORE,
                wanted.y < end && mask.visible(mine.y) ? score(products.y) : LOWEST_SCORE
            );
            stream.add(scores, keys.v, a, b, at);
        }
    }
}
