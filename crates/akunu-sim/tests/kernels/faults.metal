// One planted fault a kernel. The tests name the lines: keep the comments "fault: …" on them.
#include <metal_stdlib>
using namespace metal;

kernel void divergent_barrier(device float *y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float tile[64];
    tile[t] = 1.0f;
    if (t < 40) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // fault: divergent_barrier
    }
    y[t] = tile[t];
}

kernel void two_barriers(device float *y [[buffer(0)]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint t [[thread_index_in_threadgroup]]) {
    if (simdgroup == 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // fault: two_barriers
    } else {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    y[t] = 1.0f;
}

kernel void divergent_simd(device float *y [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
    float sum = 0.0f;
    if (lane < 16) {
        sum = simd_sum(1.0f); // fault: divergent_simd
    }
    y[lane] = sum;
}

kernel void early_return(device float *y [[buffer(0)]], uint t [[thread_position_in_grid]]) {
    if (t >= 50) {
        return;
    }
    y[t] = simd_max(float(t)); // fault: early_return
}

kernel void write_at(device uchar *y [[buffer(0)]], constant int &at [[buffer(1)]]) {
    y[at] = 1;
}

kernel void read_at(device const float *x [[buffer(0)]], constant int &at [[buffer(1)]],
                    device float *y [[buffer(2)]]) {
    y[0] = x[at];
}

kernel void write_const(device const float *x [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    if (t == 3) {
        *(device float *)(x + t) = 1.0f;
    }
}

kernel void misaligned_vector(device const float *x [[buffer(0)]], constant uint &first [[buffer(1)]],
                              device float4 *y [[buffer(2)]], uint t [[thread_index_in_threadgroup]]) {
    device const float4 *v = (device const float4 *)(x + first);
    y[t] = v[t]; // fault: misaligned_vector
}

kernel void shift_too_far(device uint *y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    y[t] = 1u << (t + 16); // fault: shift_too_far
}

// Arrays of a thread in a struct: the lint would refuse those that a function declares.
struct Eight {
    float own[8];
    float behind;  // an array at the end of a struct could be of any length
};

kernel void index_too_large(device float *y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    Eight eight = {{0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f}, 8.0f};
    y[t] = eight.own[t]; // fault: index_too_large
}

kernel void divides_by_zero(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],
                            uint t [[thread_index_in_threadgroup]]) {
    y[t] = 100 / x[t]; // fault: divides_by_zero
}

kernel void unwritten_tile(device float *y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float tile[32];
    if (t != 5) {
        tile[t] = 1.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = tile[t] * 2.0f;
}

kernel void too_much_memory(device float *y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float one[4096];
    threadgroup float other[4352];
    one[t] = other[t] = 1.0f;
    y[t] = one[t];
}

kernel void enough_memory(device float *y [[buffer(0)]], threadgroup float *more [[threadgroup(1)]],
                          uint t [[thread_index_in_threadgroup]]) {
    threadgroup float one[4096];
    one[t] = more[t] = 1.0f;
    y[t] = one[t];
}

kernel void beside_the_tile(device float *y [[buffer(0)]], threadgroup float *tile [[threadgroup(0)]],
                            uint t [[thread_index_in_threadgroup]]) {
    tile[t + 1] = 1.0f;
    y[t] = tile[t];
}

constant uint FC_UNSET [[function_constant(9)]];

kernel void unset_constant(device uint *y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    y[t] = FC_UNSET; // fault: unset_constant
}

struct Deep {
    float own[100000];
};

kernel void deep_stack(device float *y [[buffer(0)]], constant uint &n [[buffer(1)]],
                       uint t [[thread_index_in_threadgroup]]) {
    Deep deep;
    for (uint i = 0; i < n; i++) {
        deep.own[(i * 7919) % 100000] = float(i);
    }
    y[t] = deep.own[n / 2];
}
