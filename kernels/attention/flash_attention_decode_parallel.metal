// flash_attention_decode_parallel_f16: attention of one row over a long context, many SIMD groups.
//
// Formula and bindings as in include/attention.h; which keys count in include/attention_mask.h.
//
// Launch:  one threadgroup for each row (x) and head (y), up to 32 SIMD groups (1024 threads); fewer
//          where the pipeline allows fewer.
// Memory:  each key and value is read once, four elements at a time. Of every n tiles of 32 keys a SIMD group of n
//          takes one. Their softmaxes join by chunks of 32 elements through 4.3 KB of threadgroup
//          memory, where each element is summed by one SIMD group, a lane for each stream.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_team.h"
#include "include/reduce.h"

using namespace metal;

// A column of padding: the 32 lanes that read one element of 32 streams hit 32 banks.
constant constexpr uint STREAM_STRIDE = CHUNK + 1;

kernel void flash_attention_decode_parallel_f16(
    device const float *Q               [[buffer(0)]],
    device const half *K                [[buffer(1)]],
    device const half *V                [[buffer(2)]],
    device float *O                     [[buffer(3)]],
    constant AttentionParams &params    [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device const uint *table            [[buffer(6)]],
    uint2 place                         [[threadgroup_position_in_grid]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    threadgroup float peaks[MAX_SIMD_GROUPS];
    threadgroup float sums[MAX_SIMD_GROUPS];
    threadgroup float streams[MAX_SIMD_GROUPS * STREAM_STRIDE];
    static_assert(sizeof(peaks) + sizeof(sums) + sizeof(streams) <= 32768, "threadgroup memory");

    device const Row &row = rows[params.first_row + place.x];
    const Keys keys = keys_of(K, V, params, table, uint2(row.sequence, place.y));
    const RowMask mask = row_mask(row);
    const TeamLane at = team_lane(lane, keys.slots.head_dim);
    const ulong offset = query_offset(params, params.first_row + place.x, place.y);

    TeamQuery query;
    query.load(Q + offset, query_factor(params), at);
    TeamStream stream;
    stream.clear();
    stream_keys(stream, query, keys, mask, at, uint2(simd_group, n_simd_groups));
    stream.join_teams();

    if (lane == 0) {
        peaks[simd_group] = stream.peak;
        sums[simd_group] = stream.sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // From here on lane s stands for the stream of SIMD group s.
    const bool exists = lane < n_simd_groups;
    const float peak = exists ? peaks[lane] : LOWEST_SCORE;
    const float joint = simd_max(peak);
    const float total = simd_sum(exists ? sums[lane] * fast::exp2(peak - joint) : 0.0f);
    stream.scale(fast::exp2(stream.peak - joint) * inverse_sum(total));

#pragma unroll
    for (uint c = 0; c < MAX_CHUNKS; c++) {
        if (c >= at.n_chunks) {
            break;
        }
        if (at.team == 0) {
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                streams[simd_group * STREAM_STRIDE + 4 * at.lane + i] = stream.chunks[c][i];
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = simd_group; i < CHUNK; i += n_simd_groups) {
            const float sum = simd_sum(exists ? streams[lane * STREAM_STRIDE + i] : 0.0f);
            if (lane == 0 && c * CHUNK + i < keys.slots.head_dim) {
                O[offset + c * CHUNK + i] = sum;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}
