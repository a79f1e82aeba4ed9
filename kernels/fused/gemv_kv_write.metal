// gemv_<format>_kv_write: a projection whose output goes straight into the KV cache.
//
//     cache[h][pos % max_seq_len][i] = sum_k weight[h * head_dim + i][k] * x[k], as half
//
// Launch:  grid ceil(N / (4 * SIMD groups)), any number of SIMD groups.
// Memory:  weights are read once; sums in registers; no threadgroup memory.

#include "include/dot_rows.h"

constant constexpr uint KV_ROWS = 4;

template <typename F>
kernel void gemv_kv_write(
    device const float *x            [[buffer(0)]],  // (K)
    device const uchar *weight       [[buffer(1)]],  // (n_kv_heads * head_dim, K)
    device half *cache               [[buffer(2)]],  // (n_kv_heads, max_seq_len, head_dim)
    constant GEMVKVParams &params    [[buffer(3)]],
    uint group                       [[threadgroup_position_in_grid]],
    uint simd_group                  [[simdgroup_index_in_threadgroup]],
    uint lane                        [[thread_index_in_simdgroup]],
    uint n_simd_groups               [[simdgroups_per_threadgroup]]
) {
    const uint first = (group * n_simd_groups + simd_group) * KV_ROWS;
    typename F::Row rows[KV_ROWS];
    take_rows<F, KV_ROWS>(weight, weight_layout(params), first, rows);

    float sums[KV_ROWS] = { 0.0f };
    const DeviceX x_row = { x };
    dot_rows<F, KV_ROWS>(rows, x_row, uint2(0, matmul_k(params.K)), lane, sums);

    const uint head_dim = max(params.head_dim, 1u);
    const uint max_seq_len = max(params.max_seq_len, 1u);
    for (uint r = 0; r < KV_ROWS; r++) {
        const float value = simd_sum(sums[r]);
        const uint n = first + r;
        if (lane == r && n < params.N) {
            const ulong slot = ulong(n / head_dim) * max_seq_len + params.pos % max_seq_len;
            cache[slot * head_dim + n % head_dim] = half(value);
        }
    }
}

// for each format: gemv_<format>_kv_write is gemv_kv_write<Format>
template [[host_name("gemv_f32_kv_write")]] kernel decltype(gemv_kv_write<FormatF32>) gemv_kv_write<FormatF32>;
template [[host_name("gemv_f16_kv_write")]] kernel decltype(gemv_kv_write<FormatF16>) gemv_kv_write<FormatF16>;
template [[host_name("gemv_q4_0_kv_write")]] kernel decltype(gemv_kv_write<FormatQ4_0>) gemv_kv_write<FormatQ4_0>;
template [[host_name("gemv_q4_1_kv_write")]] kernel decltype(gemv_kv_write<FormatQ4_1>) gemv_kv_write<FormatQ4_1>;
template [[host_name("gemv_q5_0_kv_write")]] kernel decltype(gemv_kv_write<FormatQ5_0>) gemv_kv_write<FormatQ5_0>;
template [[host_name("gemv_q5_1_kv_write")]] kernel decltype(gemv_kv_write<FormatQ5_1>) gemv_kv_write<FormatQ5_1>;
template [[host_name("gemv_q8_0_kv_write")]] kernel decltype(gemv_kv_write<FormatQ8_0>) gemv_kv_write<FormatQ8_0>;
template [[host_name("gemv_q2_k_kv_write")]] kernel decltype(gemv_kv_write<FormatQ2K>) gemv_kv_write<FormatQ2K>;
template [[host_name("gemv_q3_k_kv_write")]] kernel decltype(gemv_kv_write<FormatQ3K>) gemv_kv_write<FormatQ3K>;
template [[host_name("gemv_q4_k_kv_write")]] kernel decltype(gemv_kv_write<FormatQ4K>) gemv_kv_write<FormatQ4K>;
template [[host_name("gemv_q5_k_kv_write")]] kernel decltype(gemv_kv_write<FormatQ5K>) gemv_kv_write<FormatQ5K>;
template [[host_name("gemv_q6_k_kv_write")]] kernel decltype(gemv_kv_write<FormatQ6K>) gemv_kv_write<FormatQ6K>;
template [[host_name("gemv_bf16_kv_write")]] kernel decltype(gemv_kv_write<FormatBF16>) gemv_kv_write<FormatBF16>;
template [[host_name("gemv_mlx_q2_kv_write")]] kernel decltype(gemv_kv_write<FormatMlxQ2>) gemv_kv_write<FormatMlxQ2>;
template [[host_name("gemv_mlx_q3_kv_write")]] kernel decltype(gemv_kv_write<FormatMlxQ3>) gemv_kv_write<FormatMlxQ3>;
template [[host_name("gemv_mlx_q4_kv_write")]] kernel decltype(gemv_kv_write<FormatMlxQ4>) gemv_kv_write<FormatMlxQ4>;
template [[host_name("gemv_mlx_q5_kv_write")]] kernel decltype(gemv_kv_write<FormatMlxQ5>) gemv_kv_write<FormatMlxQ5>;
template [[host_name("gemv_mlx_q6_kv_write")]] kernel decltype(gemv_kv_write<FormatMlxQ6>) gemv_kv_write<FormatMlxQ6>;
template [[host_name("gemv_mlx_q8_kv_write")]] kernel decltype(gemv_kv_write<FormatMlxQ8>) gemv_kv_write<FormatMlxQ8>;
// end of formats
