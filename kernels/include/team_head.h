// A head of whole chunks in the lanes of a team (attention_team.h): norm, RoPE, and rounding to what a page holds.
#pragma once

#include <metal_stdlib>

#include "include/attention_team.h"
#include "include/rope.h"

using namespace metal;

// Pairs of the largest head.
constant constexpr uint MAX_PAIRS = MAX_HEAD_DIM / 2;

struct TeamHead {
    float4 chunks[MAX_CHUNKS];

    void load(device const float *head, TeamLane at) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] = c < at.n_chunks ? *(device const float4 *)(head + at.element(c)) : float4(0.0f);
        }
    }

    // The other head where `takes` says so.
    void replace(thread const TeamHead &other, bool takes) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] = takes ? other.chunks[c] : chunks[c];
        }
    }

    // x - other where `takes` says so.
    void subtract(thread const TeamHead &other, bool takes) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] -= takes ? other.chunks[c] : float4(0.0f);
        }
    }

    // x / rms(x) * weight. The weights are under way while the squares are added up. All lanes must call it.
    void normalise(device const float *weight, float eps, TeamLane at) {
        TeamHead weights;
        weights.load(weight, at);
        float square = 0.0f;
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            square += dot(chunks[c], chunks[c]);
        }
        const float inverse = 1.0f / sqrt(team_sum(square) / float(at.head_dim) + eps);
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] = chunks[c] * inverse * weights.chunks[c];
        }
    }

    // As a page gives it back, in halves or in 8 bits; where it `stores`, it is put there. All lanes must call it.
    void round_to_page(device half *pool, SlotAt to, bool stores, TeamLane at) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (c >= at.n_chunks) {
                continue;
            }
            if (!KV_Q8) {
                const half4 rounded = half4(chunks[c]);
                if (stores) {
                    *(device half4 *)(pool + to.numbers + at.element(c)) = rounded;
                }
                chunks[c] = float4(rounded);
                continue;
            }
            const float4 sizes = abs(chunks[c]);
            const float largest = team_max(max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
            const half scale = half(largest / Q8_LARGEST);
            const float4 whole = scale == 0.0h
                ? float4(0.0f)
                : clamp(rint(chunks[c] / float(scale)), float4(-Q8_LARGEST), float4(Q8_LARGEST));
            if (stores) {
                *(device char4 *)((device char *)pool + to.numbers + at.element(c)) = char4(whole);
                if (at.lane == 0) {
                    pool[to.scales + c] = scale;
                }
            }
            chunks[c] = whole * float(scale);
        }
    }
};

// Turns a head; the rotations of its pairs, (cosine, sine), are in threadgroup memory.
template <typename Style> void turn(thread TeamHead &head, threadgroup const float2 *rotations, TeamLane at);

template <> void turn<Interleaved>(thread TeamHead &head, threadgroup const float2 *rotations, TeamLane at) {
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        if (c < at.n_chunks) {
            const float2 first = rotations[at.element(c) / 2];
            const float2 second = rotations[at.element(c) / 2 + 1];
            const float4 x = head.chunks[c];
            head.chunks[c].xy = Rotation{first.x, first.y}.apply(x.xy);
            head.chunks[c].zw = Rotation{second.x, second.y}.apply(x.zw);
        }
    }
}

// The second half of what turns of a head begins some whole chunks after the first, one to four. Chunks are selected and not indexed by their
// number, so that they stay in registers.
template <> void turn<SplitHalves>(thread TeamHead &head, threadgroup const float2 *rotations, TeamLane at) {
    const uint n_half = turned_dim(at.head_dim) / (2 * CHUNK);
    TeamHead turned;
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        float4 other = float4(0.0f);
#pragma unroll
        for (uint n = 1; n <= MAX_CHUNKS / 2; n++) {
            if (c < 2 * n) {
                other = n == n_half ? head.chunks[c < n ? c + n : c - n] : other;
            }
        }
        const bool is_first = c < n_half;
        turned.chunks[c] = head.chunks[c];
        if (c < 2 * n_half) {
            threadgroup const float2 *r = rotations + at.element(c) - (is_first ? 0 : n_half * CHUNK);
            const float4 cosine = float4(r[0].x, r[1].x, r[2].x, r[3].x);
            const float4 sine = float4(r[0].y, r[1].y, r[2].y, r[3].y);
            turned.chunks[c] = head.chunks[c] * cosine + (is_first ? -other : other) * sine;
        }
    }
    head = turned;
}
