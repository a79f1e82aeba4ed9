// What threads store and others read, behind barriers whose flags come from the host.
#include <metal_stdlib>
using namespace metal;

constant uint SIMDGROUP_FLAGS [[function_constant(0)]];
constant uint THREADGROUP_FLAGS [[function_constant(1)]];
constant uint PARTNER [[function_constant(2)]];

// Thread t stores t + 1 in both memories, and reads what thread t ^ PARTNER has stored there.
kernel void hand_over(device uint *memory [[buffer(0)]], device uint *seen [[buffer(1)]],
                      uint t [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[64];
    memory[t] = t + 1;
    tile[t] = t + 1;
    simdgroup_barrier(mem_flags(SIMDGROUP_FLAGS));
    threadgroup_barrier(mem_flags(THREADGROUP_FLAGS));
    seen[2 * t] = memory[t ^ PARTNER];
    seen[2 * t + 1] = tile[t ^ PARTNER];
}

// Behind a sum over the SIMD group: what a lane has stored itself, what its neighbour has, and what all have counted.
kernel void behind_a_sum(device uint *seen [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint tile[32];
    threadgroup atomic_uint counter;
    if (lane == 0) {
        atomic_store_explicit(&counter, 0, memory_order_relaxed);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
    tile[lane] = lane + 1;
    const uint n_lanes = simd_sum(1u);
    seen[4 * lane] = tile[lane];
    seen[4 * lane + 1] = tile[lane ^ 1];
    seen[4 * lane + 2] = atomic_load_explicit(&counter, memory_order_relaxed);
    seen[4 * lane + 3] = n_lanes;
}

// Bytes and words that overlap: each lane stores a byte, then one of them a word and a byte of it again.
kernel void overlapping_stores(device uint *seen [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint words[8];
    threadgroup uchar *bytes = (threadgroup uchar *)words;
    bytes[lane] = uchar(lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 5) {
        words[1] = 0x01020304;
        bytes[4] = 9;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < 8) {
        seen[lane] = words[lane];
    }
}
