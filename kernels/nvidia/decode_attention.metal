// decode_attention_f16, decode_attention_neox_f16: RoPE, storing of the new key and value, and attention of one row.
//
//     q' = rope(q),  k' = rope(k);  with FC_HEAD_NORM of q / rms(q) * q_norm and k / rms(k) * k_norm
//     K[slot] = k',  V[slot] = v
//     O[h] = Σ_s softmax(score(q'_h · K[s]))_s V[s]
//
// Scores and pages as in include/attention.h; which keys count in include/attention_mask.h. The row's slot is the last that
// it sees. Nobody reads its key and value from memory: whoever needs them computes them.
//
// Launch:  grid (KV heads, n_groups). A threadgroup has the heads that share keys, each with the same number of SIMD
//          groups, its streams. Only as many threadgroups take part as have a tile of 32 keys for each stream, but at least
//          one; tiles go to the streams of all of them in turn.
// Memory:  keys and values come from memory once, four elements at a time, and for the further heads of a threadgroup from
//          cache. FC_HEAD_DIM must be set: heads are in registers. The streams of a head meet in threadgroup memory. Where several threadgroups take part, each leaves its
//          part as flash_attention_decode_split_f16 does, and the last to arrive joins them. `arrived` counts: zeros
//          before, and zeros after.

#include <metal_stdlib>
#include <akunu_tensor>

#include "ShaderTypes.h"
#include "include/attention_team.h"
#include "include/rope.h"
#include "include/row_table.h"

using namespace metal;

constant constexpr uint MAX_STREAMS = 16;
constant constexpr uint MAX_THREADS = 32 * MAX_STREAMS;
constant constexpr uint MAX_PAIRS = MAX_HEAD_DIM / 2;

// The sum over the lanes of a team. All lanes must call it.
inline float team_sum(float x) {
    x += simd_shuffle_xor(x, 1);
    x += simd_shuffle_xor(x, 2);
    return x + simd_shuffle_xor(x, 4);
}

// A head in the lanes of each team, as queries are.
struct TeamHead {
    float4 chunks[MAX_CHUNKS];

    void load(device const float *head, TeamLane at) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            chunks[c] = at.holds(c) ? *(device const float4 *)(head + at.element(c)) : float4(0.0f);
        }
    }

    // x / rms(x) * weight. All lanes must call it.
    void normalise(device const float *weight, float eps, TeamLane at) {
        float square = 0.0f;
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            square += dot(chunks[c], chunks[c]);
        }
        const float root = sqrt(team_sum(square) / float(at.head_dim) + eps);
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (at.holds(c)) {
                chunks[c] = chunks[c] / root * *(device const float4 *)(weight + at.element(c));
            }
        }
    }

    // As a page gives it back, in halves or in 8 bits; with `to`, it is stored there. All lanes must call it.
    void round_to_page(device half *pool, SlotAt to, bool stores, TeamLane at) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (!at.holds(c)) {
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
            float largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
            largest = max(largest, simd_shuffle_xor(largest, 1));
            largest = max(largest, simd_shuffle_xor(largest, 2));
            largest = max(largest, simd_shuffle_xor(largest, 4));
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

// Turns a head; the rotations of its pairs are in threadgroup memory.
template <typename Style> void turn(thread TeamHead &head, threadgroup const float2 *rotations, TeamLane at);

template <> void turn<Interleaved>(thread TeamHead &head, threadgroup const float2 *rotations, TeamLane at) {
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        if (at.holds(c)) {
            const float2 first = rotations[at.element(c) / 2];
            const float2 second = rotations[at.element(c) / 2 + 1];
            const float4 x = head.chunks[c];
            head.chunks[c].xy = Rotation{first.x, first.y}.apply(x.xy);
            head.chunks[c].zw = Rotation{second.x, second.y}.apply(x.zw);
        }
    }
}

// The second half of a head begins some whole chunks after the first, one to four. Chunks are selected and not indexed by their
// number, so that they stay in registers.
template <> void turn<SplitHalves>(thread TeamHead &head, threadgroup const float2 *rotations, TeamLane at) {
    const uint n_half = at.n_chunks / 2;
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
        if (at.holds(c)) {
            threadgroup const float2 *r = rotations + at.element(c) - (is_first ? 0 : n_half * CHUNK);
            const float4 cosine = float4(r[0].x, r[1].x, r[2].x, r[3].x);
            const float4 sine = float4(r[0].y, r[1].y, r[2].y, r[3].y);
            turned.chunks[c] = head.chunks[c] * cosine + (is_first ? -other : other) * sine;
        }
    }
    head = turned;
}

// Four elements as they are stored, with their scale where they are in 8 bits.
inline uint2 load_raw(device const half *pool, SlotAt at, uint element) {
    if (!KV_Q8) {
        return *(device const uint2 *)(pool + at.numbers + element);
    }
    device const char *numbers = (device const char *)pool + at.numbers + element;
    return uint2(*(device const uint *)numbers, as_type<ushort>(pool[at.scales + element / Q8_BLOCK]));
}

inline float4 widen(uint2 raw) {
    if (!KV_Q8) {
        return float4(as_type<half4>(raw));
    }
    return float4(as_type<char4>(raw.x)) * float(as_type<half>(ushort(raw.y)));
}

// Keys of a team that are under way at once: four, or two of large heads.
constant constexpr uint TEAM_KEYS = 4;

// What stream_keys does, with more keys and their values in flight at once: a stream has few tiles, and waits for each step.
// All lanes must call it.
inline void stream_slots(
    thread TeamStream &stream, thread const TeamQuery &query, Keys keys, RowMask mask, TeamLane at, uint2 group
) {
    const uint tile_step = KEY_TILE * group.y;
    const uint n_keys = at.head_dim <= 128 ? TEAM_KEYS : TEAM_KEYS / 2;
    for (uint first = tile_of(mask.begin) + KEY_TILE * group.x; first < mask.end; first += tile_step) {
        const SlotAt tile = keys.slots.at(first);
        const uint end = min(first + KEY_TILE, mask.end);
        for (uint slot = max(first, mask.begin); slot < end; slot += n_keys * N_TEAMS) {
            uint2 k[TEAM_KEYS][MAX_CHUNKS];
            uint2 v[TEAM_KEYS][MAX_CHUNKS];
#pragma unroll
            for (uint i = 0; i < TEAM_KEYS; i++) {
                // A team beyond the end reads the last key again and drops it.
                const uint mine = min(slot + N_TEAMS * i + at.team, end - 1);
                const SlotAt from = tile.after(mine - first, keys.slots.head_dim);
#pragma unroll
                for (uint c = 0; c < MAX_CHUNKS; c++) {
                    const bool is_mine = i < n_keys && at.holds(c);
                    k[i][c] = is_mine ? load_raw(keys.k, from, at.element(c)) : uint2(0);
                    v[i][c] = is_mine ? load_raw(keys.v, from, at.element(c)) : uint2(0);
                }
            }
            float scores[TEAM_KEYS];
            float peak = stream.peak;
#pragma unroll
            for (uint i = 0; i < TEAM_KEYS; i++) {
                float4 sums = float4(0.0f);
#pragma unroll
                for (uint c = 0; c < MAX_CHUNKS; c++) {
                    if (at.holds(c)) {
                        sums += query.chunks[c] * widen(k[i][c]);
                    }
                }
                const uint wanted = slot + N_TEAMS * i + at.team;
                const float product = team_sum((sums.x + sums.y) + (sums.z + sums.w));
                const bool counts = i < n_keys && wanted < end && mask.visible(wanted);
                scores[i] = counts ? score(product) : LOWEST_SCORE;
                peak = max(peak, scores[i]);
            }
            stream.scale(fast::exp2(stream.peak - peak));
            stream.peak = peak;
#pragma unroll
            for (uint i = 0; i < TEAM_KEYS; i++) {
                const float weight = scores[i] == LOWEST_SCORE ? 0.0f : fast::exp2(scores[i] - peak);
                stream.sum += weight;
#pragma unroll
                for (uint c = 0; c < MAX_CHUNKS; c++) {
                    if (at.holds(c)) {
                        stream.chunks[c] += weight * widen(v[i][c]);
                    }
                }
            }
        }
    }
}

// Adds the row's own key and value to the stream of the first team.
inline void add_own(
    thread TeamStream &stream, float own_score, thread const TeamHead &value, TeamLane at
) {
    const float score = at.team == 0 ? own_score : LOWEST_SCORE;
    const float new_peak = max(stream.peak, score);
    const float weight = at.team == 0 ? fast::exp2(score - new_peak) : 0.0f;
    stream.scale(fast::exp2(stream.peak - new_peak));
    stream.peak = new_peak;
    stream.sum += weight;
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        stream.chunks[c] += weight * value.chunks[c];
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
    device float *parts                         [[buffer(12)]],  // (n_heads, n_groups, head_dim)
    device float *weights                       [[buffer(13)]],  // (n_heads, n_groups)
    device uint *arrived                        [[buffer(14)]],  // (n_kv_heads)
    uint2 place                                 [[threadgroup_position_in_grid]],
    uint thread_index                           [[thread_index_in_threadgroup]],
    uint simd_group                             [[simdgroup_index_in_threadgroup]],
    uint lane                                   [[thread_index_in_simdgroup]],
    uint n_simd_groups                          [[simdgroups_per_threadgroup]]
) {
    threadgroup float2 rotations[MAX_PAIRS];
    threadgroup float peaks[MAX_STREAMS];
    threadgroup float sums[MAX_STREAMS];
    threadgroup float4 vectors[MAX_STREAMS * MAX_HEAD_DIM / 4];
    threadgroup float team_peaks[MAX_THREADS];
    threadgroup float team_sums[MAX_THREADS];
    threadgroup uint n_before;

    const uint n_shared = params.n_heads / params.n_kv_heads;
    const uint n_streams = n_simd_groups / n_shared;
    const uint n_threads = n_simd_groups * 32;
    const uint head_dim = FC_HEAD_DIM;
    const uint first_head = place.x * n_shared;
    device const Row &row = rows[0];
    const RowMask mask = row_mask(row);
    // Without the row's own slot, the last.
    const bool has_own = mask.end > 0;
    const RowMask earlier = { mask.begin, mask.end - (has_own ? 1 : 0), mask.hidden >> 1 };
    const uint n_tiles = earlier.end > earlier.begin ? (earlier.end - 1) / KEY_TILE - earlier.begin / KEY_TILE + 1 : 0;
    const uint n_parts = clamp((n_tiles + n_streams - 1) / n_streams, 1u, params.n_groups);
    nvidia::at_most_512_threads();
    if (place.y >= n_parts) {
        return;
    }

    const uint stream_index = simd_group / n_shared;
    const uint head = first_head + simd_group % n_shared;
    const TeamLane at = team_lane(lane, head_dim);
    TeamHead turned;
    turned.load(q + head * head_dim, at);
    if (HAS_HEAD_NORM) {
        turned.normalise(q_norm, params.eps, at);
    }
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    for (uint pair = thread_index; pair < head_dim / 2; pair += n_threads) {
        const Rotation rotation = frequencies.at(float(row.position), pair);
        rotations[pair] = float2(rotation.cosine, rotation.sine);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    turn<Style>(turned, rotations, at);

    Slots slots = slots_of(table, params, row.sequence, place.x);
    slots.head_dim = head_dim;
    TeamQuery query;
#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        query.chunks[c] = turned.chunks[c] * query_factor(params);
    }
    TeamStream stream;
    stream.clear();
    stream_slots(
        stream, query, Keys{ K, V, slots }, earlier, at,
        uint2(place.y * n_streams + stream_index, n_parts * n_streams)
    );
    // The last stream is the first to have nothing else to do.
    if (has_own && place.y == 0 && stream_index == n_streams - 1) {
        const SlotAt own = slots.at(row.slot);
        const bool stores = head == first_head && at.team == 0;
        TeamHead key;
        key.load(k + place.x * head_dim, at);
        if (HAS_HEAD_NORM) {
            key.normalise(k_norm, params.eps, at);
        }
        turn<Style>(key, rotations, at);
        key.round_to_page(K, own, stores, at);
        float product = 0.0f;
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            product += dot(query.chunks[c], key.chunks[c]);
        }
        TeamHead value;
        value.load(v + place.x * head_dim, at);
        value.round_to_page(V, own, stores, at);
        add_own(stream, score(team_sum(product)), value, at);
    }
    stream.join_teams();

    if (at.team == 0) {
#pragma unroll
        for (uint c = 0; c < MAX_CHUNKS; c++) {
            if (at.holds(c)) {
                vectors[(simd_group * head_dim + at.element(c)) / 4] = stream.chunks[c];
            }
        }
    }
    if (lane == 0) {
        peaks[simd_group] = stream.peak;
        sums[simd_group] = stream.sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup const float *values = (threadgroup const float *)vectors;
    for (uint i = thread_index; i < n_shared * head_dim; i += n_threads) {
        const uint shared_head = i / head_dim;
        float peak = LOWEST_SCORE;
        for (uint s = shared_head; s < n_simd_groups; s += n_shared) {
            peak = max(peak, peaks[s]);
        }
        float sum = 0.0f;
        float value = 0.0f;
        for (uint s = shared_head; s < n_simd_groups; s += n_shared) {
            const float factor = fast::exp2(peaks[s] - peak);
            sum += factor * sums[s];
            value += factor * values[s * head_dim + i % head_dim];
        }
        value *= inverse_sum(sum);
        if (n_parts == 1) {
            O[first_head * head_dim + i] = value;
        } else {
            const uint part = (first_head + shared_head) * params.n_groups + place.y;
            parts[part * head_dim + i % head_dim] = value;
            if (i % head_dim == 0) {
                weights[part] = sum > 0.0f ? peak + log2(sum) : -INFINITY;
            }
        }
    }
    if (n_parts == 1) {
        return;
    }

    // What a threadgroup has left is there before it counts itself, and what others have left when it was counted. One thread
    // sees to that for all, before and after a barrier.
    threadgroup_barrier(mem_flags::mem_device);
    if (thread_index == 0) {
        nvidia::device_fence();
        n_before = atomic_fetch_add_explicit((device atomic_uint *)arrived + place.x, 1u, memory_order_relaxed);
        nvidia::device_fence();
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    if (n_before + 1 < n_parts) {
        return;
    }
    if (thread_index == 0) {
        arrived[place.x] = 0;
    }

    // A thread for each four elements and every n-th part, then the sum of those.
    const uint head_vectors = head_dim / 4;
    const uint n_vectors = n_shared * head_vectors;
    const uint n_teams = max(n_threads / n_vectors, 1u);
    for (uint i = thread_index; i < n_teams * n_vectors; i += n_threads) {
        const uint first = (first_head + i % n_vectors / head_vectors) * params.n_groups;
        device const float4 *from = (device const float4 *)parts + i % head_vectors;
        float peak = LOWEST_SCORE;
        float sum = 0.0f;
        float4 value = float4(0.0f);
#pragma unroll 4
        for (uint p = i / n_vectors; p < n_parts; p += n_teams) {
            const float weight = weights[first + p];
            const float4 part = from[(first + p) * head_vectors];
            const float new_peak = max(peak, weight);
            const float old = fast::exp2(peak - new_peak);
            const float factor = fast::exp2(weight - new_peak);
            peak = new_peak;
            sum = sum * old + factor;
            value = value * old + factor * part;
        }
        vectors[i] = value;
        team_peaks[i] = peak;
        team_sums[i] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < n_vectors; i += n_threads) {
        float peak = LOWEST_SCORE;
        for (uint t = i; t < n_teams * n_vectors; t += n_vectors) {
            peak = max(peak, team_peaks[t]);
        }
        float sum = 0.0f;
        float4 value = float4(0.0f);
        for (uint t = i; t < n_teams * n_vectors; t += n_vectors) {
            const float factor = fast::exp2(team_peaks[t] - peak);
            sum += factor * team_sums[t];
            value += factor * vectors[t];
        }
        *(device float4 *)(O + first_head * head_dim + 4 * i) = value * inverse_sum(sum);
    }
}

typedef decltype(decode_attention<Interleaved>) decode_attention_t;

template [[host_name("decode_attention_f16")]] kernel decode_attention_t decode_attention<Interleaved>;
template [[host_name("decode_attention_neox_f16")]] kernel decode_attention_t decode_attention<SplitHalves>;
