// Every SIMD and quad operation: row r of the output holds operation r of all lanes.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

kernel void lane_operations(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint n [[threads_per_simdgroup]]) {
    uint v = x[lane];
    y += lane;
    y[0 * n] = simd_sum(v);
    y[1 * n] = simd_max(v);
    y[2 * n] = simd_min(v);
    y[3 * n] = simd_and(v | 8);
    y[4 * n] = simd_or(v);
    y[5 * n] = simd_xor(v);
    y[6 * n] = simd_prefix_inclusive_sum(v);
    y[7 * n] = simd_prefix_exclusive_sum(v);
    y[8 * n] = simd_broadcast(v, 5);
    y[9 * n] = simd_broadcast_first(v);
    y[10 * n] = simd_shuffle(v, 31 - lane);
    y[11 * n] = simd_shuffle_xor(v, 9);
    y[12 * n] = simd_shuffle_up(v, 3);
    y[13 * n] = simd_shuffle_down(v, 3);
    y[14 * n] = simd_shuffle_rotate_up(v, 3);
    y[15 * n] = simd_shuffle_rotate_down(v, 3);
    y[16 * n] = uint(simd_vote::vote_t(simd_ballot(v % 3 == 0)));
    y[17 * n] = uint(simd_all(v < 1000)) + 2 * uint(simd_any(v == 12345)) + 4 * uint(simd_is_first());
    y[18 * n] = quad_sum(v);
    y[19 * n] = quad_max(v);
    y[20 * n] = quad_broadcast(v, 2);
    y[21 * n] = quad_shuffle_xor(v, 1);
    y[22 * n] = quad_shuffle_up(v, 1);
    y[23 * n] = quad_shuffle_down(v, 1);
    y[24 * n] = simd_product(lane < 4 ? lane + 1 : 1);
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

// Wide and narrow values travel too.
kernel void lane_types(device float4 *y [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
    float4 wide = simd_shuffle_xor(float4(lane, lane * 2, lane * 3, lane * 4), 1);
    half narrow = simd_sum(half(lane));
    uchar flag = simd_shuffle(uchar(lane % 2 == 0), 1);
    uint big = simd_max(lane << 20) >> 20;
    y[lane] = float4(wide.w, narrow, flag, big);
}

// Where a thread stands, in three dimensions.
kernel void positions(device uint *y [[buffer(0)]], uint3 grid [[thread_position_in_grid]],
                      ushort3 inside [[thread_position_in_threadgroup]],
                      uint3 group [[threadgroup_position_in_grid]], uint3 all [[threads_per_grid]],
                      uint2 threads [[threads_per_threadgroup]], uint3 groups [[threadgroups_per_grid]],
                      uint index [[thread_index_in_threadgroup]],
                      ushort lane [[thread_index_in_simdgroup]],
                      ushort simdgroup [[simdgroup_index_in_threadgroup]],
                      uint simdgroups [[simdgroups_per_threadgroup]],
                      uint quad_lane [[thread_index_in_quadgroup]],
                      uint quad [[quadgroup_index_in_threadgroup]]) {
    uint flat = (grid.z * all.y + grid.y) * all.x + grid.x;
    device uint *out = y + flat * 12;
    out[0] = grid.x;
    out[1] = grid.y;
    out[2] = grid.z;
    out[3] = inside.x + 100 * inside.y + 10000 * inside.z;
    out[4] = group.x + 100 * group.y + 10000 * group.z;
    out[5] = threads.x + 100 * threads.y;
    out[6] = groups.x + 100 * groups.y + 10000 * groups.z;
    out[7] = index;
    out[8] = lane;
    out[9] = simdgroup;
    out[10] = simdgroups;
    out[11] = quad * 4 + quad_lane;
}
