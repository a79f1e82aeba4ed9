// SIMD group matrices: products, and the layout behind thread_elements().
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// c = a × b + c for 8×8 tiles of larger matrices; b is given transposed.
template <typename T>
kernel void multiply(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]],
                     device float *c [[buffer(2)]], constant uint &k [[buffer(3)]],
                     uint2 tile [[threadgroup_position_in_grid]], uint2 tiles [[threadgroups_per_grid]]) {
    uint n = tiles.x * 8;
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint i = 0; i < k; i += 8) {
        simdgroup_matrix<T, 8, 8> left;
        simdgroup_matrix<T, 8, 8> right;
        simdgroup_load(left, a, k, ulong2(i, tile.y * 8));
        simdgroup_load(right, b, k, ulong2(i, tile.x * 8), true);
        simdgroup_multiply_accumulate(sum, left, right, sum);
    }
    simdgroup_store(sum, c + tile.y * 8 * n + tile.x * 8, n);
}

template [[host_name("multiply_f32")]] kernel decltype(multiply<float>) multiply<float>;
template [[host_name("multiply_f16")]] kernel decltype(multiply<half>) multiply<half>;
template [[host_name("multiply_bf16")]] kernel decltype(multiply<bfloat>) multiply<bfloat>;

// Sums each row of an 8×8 matrix by shuffles among the lanes that hold it.
template <ushort FIRST, ushort SECOND>
kernel void row_sums(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                     ushort lane [[thread_index_in_simdgroup]]) {
    simdgroup_float8x8 m;
    simdgroup_load(m, x, 8);
    float2 pair = m.thread_elements();
    float sum = pair.x + pair.y;
    sum += simd_shuffle_xor(sum, FIRST);
    sum += simd_shuffle_xor(sum, SECOND);
    ushort row = (lane / 2) % 4 + (lane / 16) * 4;
    y[row] = sum;
}

template [[host_name("row_sums")]] kernel decltype(row_sums<1, 8>) row_sums<1, 8>;
// The layout that one would guess: four neighbouring lanes hold a row. It is not Apple's.
template [[host_name("row_sums_wrong_layout")]] kernel decltype(row_sums<1, 2>) row_sums<1, 2>;

// A scaled identity times a matrix, in half, through threadgroup memory.
kernel void scale_by_identity(device const half *x [[buffer(0)]], device half *y [[buffer(1)]],
                              ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup half tile[64];
    tile[lane] = x[lane];
    tile[lane + 32] = x[lane + 32];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_half8x8 three(half(3.0f));
    simdgroup_half8x8 m;
    simdgroup_half8x8 product;
    simdgroup_load(m, tile, 8);
    simdgroup_multiply(product, three, m);
    simdgroup_store(product, y, 8, ulong2(0, 0), false);
}
