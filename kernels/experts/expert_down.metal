// expert_down_<format>: y[r][i][n] = W[e][n] . x[r][i], e = ids[r][i]
//
// The last product of the experts that a row uses. See include/experts.h.

#include "include/experts.h"

constant constexpr uint DOWN_OUTPUTS = 4;

template <typename F>
kernel void expert_down(
    device const float *x             [[buffer(0)]],  // (n_rows, n_used, K)
    device const uint *ids            [[buffer(1)]],  // (n_rows, n_used)
    device const uchar *weight        [[buffer(2)]],  // (n_experts, N, K)
    device const float *bias          [[buffer(3)]],  // (n_experts, N)
    device const float *scale         [[buffer(4)]],  // (n_experts)
    device float *y                   [[buffer(5)]],  // (n_rows, n_used, N)
    constant ExpertParams &params     [[buffer(6)]],
    uint2 group                       [[threadgroup_position_in_grid]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]],
    uint n_simd_groups                [[simdgroups_per_threadgroup]]
) {
    const uint first = (group.x * n_simd_groups + simd_group) * DOWN_OUTPUTS;
    const uint expert = min(ids[group.y], params.n_experts - 1);
    const ExpertRows of_expert = expert_rows(params, expert);
    typename F::Row rows[DOWN_OUTPUTS];
    take_rows<F, DOWN_OUTPUTS>(weight, first_layout(params, of_expert.end), of_expert.first + first, rows);

    const DeviceX own{ x + ulong(group.y) * params.K };
    float sums[DOWN_OUTPUTS] = { 0.0f };
    dot_rows<F, DOWN_OUTPUTS>(rows, own, uint2(0, params.K), lane, sums);
    for (uint r = 0; r < DOWN_OUTPUTS; r++) {
        const uint n = first + r;
        const float product = simd_sum(sums[r]);
        if (lane == r && n < params.N) {
            y[ulong(group.y) * params.N + n] = finished(product, params, expert, n, bias, scale);
        }
    }
}

// for each format: expert_down_<format> is expert_down<Format>
template [[host_name("expert_down_f32")]] kernel decltype(expert_down<FormatF32>) expert_down<FormatF32>;
template [[host_name("expert_down_f16")]] kernel decltype(expert_down<FormatF16>) expert_down<FormatF16>;
template [[host_name("expert_down_q4_0")]] kernel decltype(expert_down<FormatQ4_0>) expert_down<FormatQ4_0>;
template [[host_name("expert_down_q4_1")]] kernel decltype(expert_down<FormatQ4_1>) expert_down<FormatQ4_1>;
template [[host_name("expert_down_q5_0")]] kernel decltype(expert_down<FormatQ5_0>) expert_down<FormatQ5_0>;
template [[host_name("expert_down_q5_1")]] kernel decltype(expert_down<FormatQ5_1>) expert_down<FormatQ5_1>;
template [[host_name("expert_down_q8_0")]] kernel decltype(expert_down<FormatQ8_0>) expert_down<FormatQ8_0>;
template [[host_name("expert_down_q2_k")]] kernel decltype(expert_down<FormatQ2K>) expert_down<FormatQ2K>;
template [[host_name("expert_down_q3_k")]] kernel decltype(expert_down<FormatQ3K>) expert_down<FormatQ3K>;
template [[host_name("expert_down_q4_k")]] kernel decltype(expert_down<FormatQ4K>) expert_down<FormatQ4K>;
template [[host_name("expert_down_q5_k")]] kernel decltype(expert_down<FormatQ5K>) expert_down<FormatQ5K>;
template [[host_name("expert_down_q6_k")]] kernel decltype(expert_down<FormatQ6K>) expert_down<FormatQ6K>;
template [[host_name("expert_down_iq2_xxs")]] kernel decltype(expert_down<FormatIQ2XXS>) expert_down<FormatIQ2XXS>;
template [[host_name("expert_down_iq2_xs")]] kernel decltype(expert_down<FormatIQ2XS>) expert_down<FormatIQ2XS>;
template [[host_name("expert_down_iq3_xxs")]] kernel decltype(expert_down<FormatIQ3XXS>) expert_down<FormatIQ3XXS>;
template [[host_name("expert_down_iq1_s")]] kernel decltype(expert_down<FormatIQ1S>) expert_down<FormatIQ1S>;
template [[host_name("expert_down_iq4_nl")]] kernel decltype(expert_down<FormatIQ4NL>) expert_down<FormatIQ4NL>;
template [[host_name("expert_down_iq3_s")]] kernel decltype(expert_down<FormatIQ3S>) expert_down<FormatIQ3S>;
template [[host_name("expert_down_iq2_s")]] kernel decltype(expert_down<FormatIQ2S>) expert_down<FormatIQ2S>;
template [[host_name("expert_down_iq4_xs")]] kernel decltype(expert_down<FormatIQ4XS>) expert_down<FormatIQ4XS>;
template [[host_name("expert_down_iq1_m")]] kernel decltype(expert_down<FormatIQ1M>) expert_down<FormatIQ1M>;
template [[host_name("expert_down_bf16")]] kernel decltype(expert_down<FormatBF16>) expert_down<FormatBF16>;
template [[host_name("expert_down_mxfp4")]] kernel decltype(expert_down<FormatMXFP4>) expert_down<FormatMXFP4>;
template [[host_name("expert_down_mlx_q2")]] kernel decltype(expert_down<FormatMlxQ2>) expert_down<FormatMlxQ2>;
template [[host_name("expert_down_mlx_q3")]] kernel decltype(expert_down<FormatMlxQ3>) expert_down<FormatMlxQ3>;
template [[host_name("expert_down_mlx_q4")]] kernel decltype(expert_down<FormatMlxQ4>) expert_down<FormatMlxQ4>;
template [[host_name("expert_down_mlx_q5")]] kernel decltype(expert_down<FormatMlxQ5>) expert_down<FormatMlxQ5>;
template [[host_name("expert_down_mlx_q6")]] kernel decltype(expert_down<FormatMlxQ6>) expert_down<FormatMlxQ6>;
template [[host_name("expert_down_mlx_q8")]] kernel decltype(expert_down<FormatMlxQ8>) expert_down<FormatMlxQ8>;
// end of formats
