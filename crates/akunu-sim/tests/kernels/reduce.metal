// Sums of rows by a whole threadgroup, right and wrong.
#include <metal_stdlib>
using namespace metal;

// Thread sums → SIMD sums → threadgroup memory → one SIMD group.
kernel void reduce_rows(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                        constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                        uint t [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]],
                        uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[32];
    float sum = 0.0f;
    for (uint i = t; i < n; i += threads) {
        sum += x[row * n + i];
    }
    sum = simd_sum(sum);
    if (lane == 0) {
        partial[simdgroup] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup == 0) {
        sum = simd_sum(lane < simdgroups ? partial[lane] : 0.0f);
        if (lane == 0) {
            y[row] = sum;
        }
    }
}

// The same without the barrier.
kernel void reduce_rows_no_barrier(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                                   constant uint &n [[buffer(2)]],
                                   uint row [[threadgroup_position_in_grid]],
                                   uint t [[thread_index_in_threadgroup]],
                                   uint threads [[threads_per_threadgroup]],
                                   uint lane [[thread_index_in_simdgroup]],
                                   uint simdgroup [[simdgroup_index_in_threadgroup]],
                                   uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[32];
    float sum = 0.0f;
    for (uint i = t; i < n; i += threads) {
        sum += x[row * n + i];
    }
    sum = simd_sum(sum);
    if (lane == 0) {
        partial[simdgroup] = sum;
    }
    if (simdgroup == 0) {
        sum = simd_sum(lane < simdgroups ? partial[lane] : 0.0f);
        if (lane == 0) {
            y[row] = sum;
        }
    }
}

// Reverses each run of 32 * k values through dynamic threadgroup memory, round after round. The barrier at
// the end of a round keeps fast SIMD groups from overwriting what slow ones still read.
template <bool BARRIER_AT_END>
kernel void reverse_rounds(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                           constant uint &rounds [[buffer(2)]], threadgroup float *tile [[threadgroup(0)]],
                           uint t [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
    for (uint round = 0; round < rounds; round++) {
        tile[t] = x[round * threads + t];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[round * threads + t] = tile[threads - 1 - t];
        if (BARRIER_AT_END) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
}

template [[host_name("reverse_rounds")]] [[kernel]] void reverse_rounds<true>(
    device const float *, device float *, constant uint &, threadgroup float *, uint, uint);
typedef decltype(reverse_rounds<false>) reverse_rounds_t;
template [[host_name("reverse_rounds_one_barrier")]] kernel reverse_rounds_t reverse_rounds<false>;
