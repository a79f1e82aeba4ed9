// decode_expert_down_<format>: the last product of the experts of a few rows, four weights at a time. See include/decode_experts.h.

#include "include/decode_experts.h"

// for each format: decode_expert_down_<format> is decode_expert_down<Format, 4>
template [[host_name("decode_expert_down_f32")]] kernel decltype(decode_expert_down<FormatF32, 4>) decode_expert_down<FormatF32, 4>;
template [[host_name("decode_expert_down_f16")]] kernel decltype(decode_expert_down<FormatF16, 4>) decode_expert_down<FormatF16, 4>;
template [[host_name("decode_expert_down_q4_0")]] kernel decltype(decode_expert_down<FormatQ4_0, 4>) decode_expert_down<FormatQ4_0, 4>;
template [[host_name("decode_expert_down_q4_1")]] kernel decltype(decode_expert_down<FormatQ4_1, 4>) decode_expert_down<FormatQ4_1, 4>;
template [[host_name("decode_expert_down_q5_0")]] kernel decltype(decode_expert_down<FormatQ5_0, 4>) decode_expert_down<FormatQ5_0, 4>;
template [[host_name("decode_expert_down_q5_1")]] kernel decltype(decode_expert_down<FormatQ5_1, 4>) decode_expert_down<FormatQ5_1, 4>;
template [[host_name("decode_expert_down_q8_0")]] kernel decltype(decode_expert_down<FormatQ8_0, 4>) decode_expert_down<FormatQ8_0, 4>;
template [[host_name("decode_expert_down_q2_k")]] kernel decltype(decode_expert_down<FormatQ2K, 4>) decode_expert_down<FormatQ2K, 4>;
template [[host_name("decode_expert_down_q3_k")]] kernel decltype(decode_expert_down<FormatQ3K, 4>) decode_expert_down<FormatQ3K, 4>;
template [[host_name("decode_expert_down_q4_k")]] kernel decltype(decode_expert_down<FormatQ4K, 4>) decode_expert_down<FormatQ4K, 4>;
template [[host_name("decode_expert_down_q5_k")]] kernel decltype(decode_expert_down<FormatQ5K, 4>) decode_expert_down<FormatQ5K, 4>;
template [[host_name("decode_expert_down_q6_k")]] kernel decltype(decode_expert_down<FormatQ6K, 4>) decode_expert_down<FormatQ6K, 4>;
template [[host_name("decode_expert_down_iq2_xxs")]] kernel decltype(decode_expert_down<FormatIQ2XXS, 4>) decode_expert_down<FormatIQ2XXS, 4>;
template [[host_name("decode_expert_down_iq2_xs")]] kernel decltype(decode_expert_down<FormatIQ2XS, 4>) decode_expert_down<FormatIQ2XS, 4>;
template [[host_name("decode_expert_down_iq3_xxs")]] kernel decltype(decode_expert_down<FormatIQ3XXS, 4>) decode_expert_down<FormatIQ3XXS, 4>;
template [[host_name("decode_expert_down_iq1_s")]] kernel decltype(decode_expert_down<FormatIQ1S, 4>) decode_expert_down<FormatIQ1S, 4>;
template [[host_name("decode_expert_down_iq4_nl")]] kernel decltype(decode_expert_down<FormatIQ4NL, 4>) decode_expert_down<FormatIQ4NL, 4>;
template [[host_name("decode_expert_down_iq3_s")]] kernel decltype(decode_expert_down<FormatIQ3S, 4>) decode_expert_down<FormatIQ3S, 4>;
template [[host_name("decode_expert_down_iq2_s")]] kernel decltype(decode_expert_down<FormatIQ2S, 4>) decode_expert_down<FormatIQ2S, 4>;
template [[host_name("decode_expert_down_iq4_xs")]] kernel decltype(decode_expert_down<FormatIQ4XS, 4>) decode_expert_down<FormatIQ4XS, 4>;
template [[host_name("decode_expert_down_iq1_m")]] kernel decltype(decode_expert_down<FormatIQ1M, 4>) decode_expert_down<FormatIQ1M, 4>;
template [[host_name("decode_expert_down_bf16")]] kernel decltype(decode_expert_down<FormatBF16, 4>) decode_expert_down<FormatBF16, 4>;
template [[host_name("decode_expert_down_mxfp4")]] kernel decltype(decode_expert_down<FormatMXFP4, 4>) decode_expert_down<FormatMXFP4, 4>;
template [[host_name("decode_expert_down_mlx_q2")]] kernel decltype(decode_expert_down<FormatMlxQ2, 4>) decode_expert_down<FormatMlxQ2, 4>;
template [[host_name("decode_expert_down_mlx_q3")]] kernel decltype(decode_expert_down<FormatMlxQ3, 4>) decode_expert_down<FormatMlxQ3, 4>;
template [[host_name("decode_expert_down_mlx_q4")]] kernel decltype(decode_expert_down<FormatMlxQ4, 4>) decode_expert_down<FormatMlxQ4, 4>;
template [[host_name("decode_expert_down_mlx_q5")]] kernel decltype(decode_expert_down<FormatMlxQ5, 4>) decode_expert_down<FormatMlxQ5, 4>;
template [[host_name("decode_expert_down_mlx_q6")]] kernel decltype(decode_expert_down<FormatMlxQ6, 4>) decode_expert_down<FormatMlxQ6, 4>;
template [[host_name("decode_expert_down_mlx_q8")]] kernel decltype(decode_expert_down<FormatMlxQ8, 4>) decode_expert_down<FormatMlxQ8, 4>;
// end of formats
