// expert_gate_<format>: y[r][i][n] = gate(Wgate[e][n] . x[r], Wup[e][n] . x[r]), e = ids[r][i]
//
// The first two products of the experts that a row uses, and the activation between them. See include/experts.h.

#include "include/experts.h"

constant constexpr uint GATE_OUTPUTS = 2;

template <typename F>
kernel void expert_gate(
    device const float *x             [[buffer(0)]],  // (n_rows, K)
    device const uint *ids            [[buffer(1)]],  // (n_rows, n_used)
    device const uchar *gate          [[buffer(2)]],  // (n_experts, N, K)
    device const uchar *up            [[buffer(3)]],  // (n_experts, N, K)
    device const float *gate_bias     [[buffer(4)]],  // (n_experts, N)
    device const float *up_bias       [[buffer(5)]],  // (n_experts, N)
    device const float *gate_scale    [[buffer(6)]],  // (n_experts)
    device const float *up_scale      [[buffer(7)]],  // (n_experts)
    device float *y                   [[buffer(8)]],  // (n_rows, n_used, N)
    constant ExpertParams &params     [[buffer(9)]],
    uint2 group                       [[threadgroup_position_in_grid]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]],
    uint n_simd_groups                [[simdgroups_per_threadgroup]]
) {
    const uint first = (group.x * n_simd_groups + simd_group) * GATE_OUTPUTS;
    const uint expert = min(ids[group.y], params.n_experts - 1);
    const ExpertRows of_expert = expert_rows(params, expert);
    typename F::Row gates[GATE_OUTPUTS];
    typename F::Row ups[GATE_OUTPUTS];
    take_rows<F, GATE_OUTPUTS>(gate, first_layout(params, of_expert.end), of_expert.first + first, gates);
    take_rows<F, GATE_OUTPUTS>(up, second_layout(params, of_expert.end), of_expert.first + first, ups);

    const DeviceX own{ x + ulong(group.y / params.n_used) * params.K };
    float gate_sums[GATE_OUTPUTS] = { 0.0f };
    float up_sums[GATE_OUTPUTS] = { 0.0f };
    dot_rows<F, GATE_OUTPUTS>(gates, own, uint2(0, params.K), lane, gate_sums);
    dot_rows<F, GATE_OUTPUTS>(ups, own, uint2(0, params.K), lane, up_sums);
    for (uint r = 0; r < GATE_OUTPUTS; r++) {
        const uint n = first + r;
        const float gate_product = simd_sum(gate_sums[r]);
        const float up_product = simd_sum(up_sums[r]);
        if (lane == r && n < params.N) {
            const float g = finished(gate_product, params, expert, n, gate_bias, gate_scale);
            const float u = finished(up_product, params, expert, n, up_bias, up_scale);
            y[ulong(group.y) * params.N + n] = expert_activation(g, u, params.activation);
        }
    }
}

// for each format: expert_gate_<format> is expert_gate<Format>
template [[host_name("expert_gate_f32")]] kernel decltype(expert_gate<FormatF32>) expert_gate<FormatF32>;
template [[host_name("expert_gate_f16")]] kernel decltype(expert_gate<FormatF16>) expert_gate<FormatF16>;
template [[host_name("expert_gate_q4_0")]] kernel decltype(expert_gate<FormatQ4_0>) expert_gate<FormatQ4_0>;
template [[host_name("expert_gate_q4_1")]] kernel decltype(expert_gate<FormatQ4_1>) expert_gate<FormatQ4_1>;
template [[host_name("expert_gate_q5_0")]] kernel decltype(expert_gate<FormatQ5_0>) expert_gate<FormatQ5_0>;
template [[host_name("expert_gate_q5_1")]] kernel decltype(expert_gate<FormatQ5_1>) expert_gate<FormatQ5_1>;
template [[host_name("expert_gate_q8_0")]] kernel decltype(expert_gate<FormatQ8_0>) expert_gate<FormatQ8_0>;
template [[host_name("expert_gate_q2_k")]] kernel decltype(expert_gate<FormatQ2K>) expert_gate<FormatQ2K>;
template [[host_name("expert_gate_q3_k")]] kernel decltype(expert_gate<FormatQ3K>) expert_gate<FormatQ3K>;
template [[host_name("expert_gate_q4_k")]] kernel decltype(expert_gate<FormatQ4K>) expert_gate<FormatQ4K>;
template [[host_name("expert_gate_q5_k")]] kernel decltype(expert_gate<FormatQ5K>) expert_gate<FormatQ5K>;
template [[host_name("expert_gate_q6_k")]] kernel decltype(expert_gate<FormatQ6K>) expert_gate<FormatQ6K>;
template [[host_name("expert_gate_iq2_xxs")]] kernel decltype(expert_gate<FormatIQ2XXS>) expert_gate<FormatIQ2XXS>;
template [[host_name("expert_gate_iq2_xs")]] kernel decltype(expert_gate<FormatIQ2XS>) expert_gate<FormatIQ2XS>;
template [[host_name("expert_gate_iq3_xxs")]] kernel decltype(expert_gate<FormatIQ3XXS>) expert_gate<FormatIQ3XXS>;
template [[host_name("expert_gate_iq1_s")]] kernel decltype(expert_gate<FormatIQ1S>) expert_gate<FormatIQ1S>;
template [[host_name("expert_gate_iq4_nl")]] kernel decltype(expert_gate<FormatIQ4NL>) expert_gate<FormatIQ4NL>;
template [[host_name("expert_gate_iq3_s")]] kernel decltype(expert_gate<FormatIQ3S>) expert_gate<FormatIQ3S>;
template [[host_name("expert_gate_iq2_s")]] kernel decltype(expert_gate<FormatIQ2S>) expert_gate<FormatIQ2S>;
template [[host_name("expert_gate_iq4_xs")]] kernel decltype(expert_gate<FormatIQ4XS>) expert_gate<FormatIQ4XS>;
template [[host_name("expert_gate_iq1_m")]] kernel decltype(expert_gate<FormatIQ1M>) expert_gate<FormatIQ1M>;
template [[host_name("expert_gate_bf16")]] kernel decltype(expert_gate<FormatBF16>) expert_gate<FormatBF16>;
template [[host_name("expert_gate_mxfp4")]] kernel decltype(expert_gate<FormatMXFP4>) expert_gate<FormatMXFP4>;
template [[host_name("expert_gate_mlx_q2")]] kernel decltype(expert_gate<FormatMlxQ2>) expert_gate<FormatMlxQ2>;
template [[host_name("expert_gate_mlx_q3")]] kernel decltype(expert_gate<FormatMlxQ3>) expert_gate<FormatMlxQ3>;
template [[host_name("expert_gate_mlx_q4")]] kernel decltype(expert_gate<FormatMlxQ4>) expert_gate<FormatMlxQ4>;
template [[host_name("expert_gate_mlx_q5")]] kernel decltype(expert_gate<FormatMlxQ5>) expert_gate<FormatMlxQ5>;
template [[host_name("expert_gate_mlx_q6")]] kernel decltype(expert_gate<FormatMlxQ6>) expert_gate<FormatMlxQ6>;
template [[host_name("expert_gate_mlx_q8")]] kernel decltype(expert_gate<FormatMlxQ8>) expert_gate<FormatMlxQ8>;
// end of formats
