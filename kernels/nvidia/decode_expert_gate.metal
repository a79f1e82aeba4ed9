// decode_expert_gate_<format>: gate and up of the experts of a few rows, four weights at a time. See include/decode_experts.h.

#include "include/decode_experts.h"

// for each format: decode_expert_gate_<format> is decode_expert_gate<Format, 4>
template [[host_name("decode_expert_gate_f32")]] kernel decltype(decode_expert_gate<FormatF32, 4>) decode_expert_gate<FormatF32, 4>;
template [[host_name("decode_expert_gate_f16")]] kernel decltype(decode_expert_gate<FormatF16, 4>) decode_expert_gate<FormatF16, 4>;
template [[host_name("decode_expert_gate_q4_0")]] kernel decltype(decode_expert_gate<FormatQ4_0, 4>) decode_expert_gate<FormatQ4_0, 4>;
template [[host_name("decode_expert_gate_q4_1")]] kernel decltype(decode_expert_gate<FormatQ4_1, 4>) decode_expert_gate<FormatQ4_1, 4>;
template [[host_name("decode_expert_gate_q5_0")]] kernel decltype(decode_expert_gate<FormatQ5_0, 4>) decode_expert_gate<FormatQ5_0, 4>;
template [[host_name("decode_expert_gate_q5_1")]] kernel decltype(decode_expert_gate<FormatQ5_1, 4>) decode_expert_gate<FormatQ5_1, 4>;
template [[host_name("decode_expert_gate_q8_0")]] kernel decltype(decode_expert_gate<FormatQ8_0, 4>) decode_expert_gate<FormatQ8_0, 4>;
template [[host_name("decode_expert_gate_q2_k")]] kernel decltype(decode_expert_gate<FormatQ2K, 4>) decode_expert_gate<FormatQ2K, 4>;
template [[host_name("decode_expert_gate_q3_k")]] kernel decltype(decode_expert_gate<FormatQ3K, 4>) decode_expert_gate<FormatQ3K, 4>;
template [[host_name("decode_expert_gate_q4_k")]] kernel decltype(decode_expert_gate<FormatQ4K, 4>) decode_expert_gate<FormatQ4K, 4>;
template [[host_name("decode_expert_gate_q5_k")]] kernel decltype(decode_expert_gate<FormatQ5K, 4>) decode_expert_gate<FormatQ5K, 4>;
template [[host_name("decode_expert_gate_q6_k")]] kernel decltype(decode_expert_gate<FormatQ6K, 4>) decode_expert_gate<FormatQ6K, 4>;
template [[host_name("decode_expert_gate_iq2_xxs")]] kernel decltype(decode_expert_gate<FormatIQ2XXS, 4>) decode_expert_gate<FormatIQ2XXS, 4>;
template [[host_name("decode_expert_gate_iq2_xs")]] kernel decltype(decode_expert_gate<FormatIQ2XS, 4>) decode_expert_gate<FormatIQ2XS, 4>;
template [[host_name("decode_expert_gate_iq3_xxs")]] kernel decltype(decode_expert_gate<FormatIQ3XXS, 4>) decode_expert_gate<FormatIQ3XXS, 4>;
template [[host_name("decode_expert_gate_iq1_s")]] kernel decltype(decode_expert_gate<FormatIQ1S, 4>) decode_expert_gate<FormatIQ1S, 4>;
template [[host_name("decode_expert_gate_iq4_nl")]] kernel decltype(decode_expert_gate<FormatIQ4NL, 4>) decode_expert_gate<FormatIQ4NL, 4>;
template [[host_name("decode_expert_gate_iq3_s")]] kernel decltype(decode_expert_gate<FormatIQ3S, 4>) decode_expert_gate<FormatIQ3S, 4>;
template [[host_name("decode_expert_gate_iq2_s")]] kernel decltype(decode_expert_gate<FormatIQ2S, 4>) decode_expert_gate<FormatIQ2S, 4>;
template [[host_name("decode_expert_gate_iq4_xs")]] kernel decltype(decode_expert_gate<FormatIQ4XS, 4>) decode_expert_gate<FormatIQ4XS, 4>;
template [[host_name("decode_expert_gate_iq1_m")]] kernel decltype(decode_expert_gate<FormatIQ1M, 4>) decode_expert_gate<FormatIQ1M, 4>;
template [[host_name("decode_expert_gate_bf16")]] kernel decltype(decode_expert_gate<FormatBF16, 4>) decode_expert_gate<FormatBF16, 4>;
template [[host_name("decode_expert_gate_mxfp4")]] kernel decltype(decode_expert_gate<FormatMXFP4, 4>) decode_expert_gate<FormatMXFP4, 4>;
template [[host_name("decode_expert_gate_mlx_q2")]] kernel decltype(decode_expert_gate<FormatMlxQ2, 4>) decode_expert_gate<FormatMlxQ2, 4>;
template [[host_name("decode_expert_gate_mlx_q3")]] kernel decltype(decode_expert_gate<FormatMlxQ3, 4>) decode_expert_gate<FormatMlxQ3, 4>;
template [[host_name("decode_expert_gate_mlx_q4")]] kernel decltype(decode_expert_gate<FormatMlxQ4, 4>) decode_expert_gate<FormatMlxQ4, 4>;
template [[host_name("decode_expert_gate_mlx_q5")]] kernel decltype(decode_expert_gate<FormatMlxQ5, 4>) decode_expert_gate<FormatMlxQ5, 4>;
template [[host_name("decode_expert_gate_mlx_q6")]] kernel decltype(decode_expert_gate<FormatMlxQ6, 4>) decode_expert_gate<FormatMlxQ6, 4>;
template [[host_name("decode_expert_gate_mlx_q8")]] kernel decltype(decode_expert_gate<FormatMlxQ8, 4>) decode_expert_gate<FormatMlxQ8, 4>;
// end of formats
