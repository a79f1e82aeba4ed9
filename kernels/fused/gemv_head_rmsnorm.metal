// gemv_<format>_head_rmsnorm: a projection and the RMSNorm of each head of its output.
//
//     q[n] = sum_k weight[n][k] * x[k]
//     y[h][i] = q[h][i] / sqrt(mean(q[h]^2) + eps) * norm[i]
//
// Launch:  one threadgroup a head, any number of SIMD groups; a SIMD group computes 4 rows at a time.
// Memory:  weights are read once; q stays in y between the passes, where each thread finds again what
//          it wrote itself; 128 bytes of threadgroup memory for the sum.

#include "include/dot_rows.h"

constant constexpr uint HEAD_ROWS = 4;

template <typename F>
kernel void gemv_head_rmsnorm(
    device const float *x                  [[buffer(0)]],  // (K)
    device const uchar *weight             [[buffer(1)]],  // (n_heads * head_dim, K)
    device const float *norm               [[buffer(2)]],  // (head_dim)
    device float *y                        [[buffer(3)]],  // (n_heads, head_dim)
    constant GEMVHeadNormParams &params    [[buffer(4)]],
    uint head                              [[threadgroup_position_in_grid]],
    uint simd_group                        [[simdgroup_index_in_threadgroup]],
    uint lane                              [[thread_index_in_simdgroup]],
    uint n_simd_groups                     [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];

    const uint head_dim = params.head_dim;
    const uint step = n_simd_groups * HEAD_ROWS;
    device float *y_head = y + ulong(head) * head_dim;
    const DeviceX x_row = { x };

    float square = 0.0f;
    for (uint first = simd_group * HEAD_ROWS; first < head_dim; first += step) {
        typename F::Row rows[HEAD_ROWS];
        take_rows<F, HEAD_ROWS>(weight, weight_layout(params), head * head_dim + first, rows);
        float sums[HEAD_ROWS] = { 0.0f };
        dot_rows<F, HEAD_ROWS>(rows, x_row, uint2(0, matmul_k(params.K)), lane, sums);
        for (uint r = 0; r < HEAD_ROWS; r++) {
            const float q = simd_sum(sums[r]);
            if (lane == r && first + r < head_dim) {
                y_head[first + r] = q;
                square += q * q;
            }
        }
    }
    const SimdPlace place = { simd_group, lane, n_simd_groups };
    const float total = threadgroup_sum(square, shared, place);
    const float inverse = 1.0f / sqrt(total / float(head_dim) + params.eps);

    for (uint first = simd_group * HEAD_ROWS; first < head_dim; first += step) {
        if (lane < HEAD_ROWS && first + lane < head_dim) {
            y_head[first + lane] *= inverse * norm[first + lane];
        }
    }
}

// for each format: gemv_<format>_head_rmsnorm is gemv_head_rmsnorm<Format>
template [[host_name("gemv_f32_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatF32>) gemv_head_rmsnorm<FormatF32>;
template [[host_name("gemv_f16_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatF16>) gemv_head_rmsnorm<FormatF16>;
template [[host_name("gemv_q4_0_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ4_0>) gemv_head_rmsnorm<FormatQ4_0>;
template [[host_name("gemv_q4_1_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ4_1>) gemv_head_rmsnorm<FormatQ4_1>;
template [[host_name("gemv_q5_0_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ5_0>) gemv_head_rmsnorm<FormatQ5_0>;
template [[host_name("gemv_q5_1_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ5_1>) gemv_head_rmsnorm<FormatQ5_1>;
template [[host_name("gemv_q8_0_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ8_0>) gemv_head_rmsnorm<FormatQ8_0>;
template [[host_name("gemv_q2_k_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ2K>) gemv_head_rmsnorm<FormatQ2K>;
template [[host_name("gemv_q3_k_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ3K>) gemv_head_rmsnorm<FormatQ3K>;
template [[host_name("gemv_q4_k_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ4K>) gemv_head_rmsnorm<FormatQ4K>;
template [[host_name("gemv_q5_k_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ5K>) gemv_head_rmsnorm<FormatQ5K>;
template [[host_name("gemv_q6_k_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatQ6K>) gemv_head_rmsnorm<FormatQ6K>;
template [[host_name("gemv_bf16_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatBF16>) gemv_head_rmsnorm<FormatBF16>;
template [[host_name("gemv_mlx_q2_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatMlxQ2>) gemv_head_rmsnorm<FormatMlxQ2>;
template [[host_name("gemv_mlx_q3_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatMlxQ3>) gemv_head_rmsnorm<FormatMlxQ3>;
template [[host_name("gemv_mlx_q4_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatMlxQ4>) gemv_head_rmsnorm<FormatMlxQ4>;
template [[host_name("gemv_mlx_q5_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatMlxQ5>) gemv_head_rmsnorm<FormatMlxQ5>;
template [[host_name("gemv_mlx_q6_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatMlxQ6>) gemv_head_rmsnorm<FormatMlxQ6>;
template [[host_name("gemv_mlx_q8_head_rmsnorm")]] kernel decltype(gemv_head_rmsnorm<FormatMlxQ8>) gemv_head_rmsnorm<FormatMlxQ8>;
// end of formats
