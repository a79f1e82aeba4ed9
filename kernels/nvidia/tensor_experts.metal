// tensor_experts_<format>: experts of prompts, 64 x 128. See include/tensor_experts.h.

#include "include/tensor_experts.h"

// for each format: tensor_experts_<format> is tensor_experts<Format, 64, 128, 2, 4, 1>
template [[host_name("tensor_experts_f16")]] kernel decltype(tensor_experts<FormatF16, 64, 128, 2, 4, 1>) tensor_experts<FormatF16, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q4_0")]] kernel decltype(tensor_experts<FormatQ4_0, 64, 128, 2, 4, 1>) tensor_experts<FormatQ4_0, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q4_1")]] kernel decltype(tensor_experts<FormatQ4_1, 64, 128, 2, 4, 1>) tensor_experts<FormatQ4_1, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q5_0")]] kernel decltype(tensor_experts<FormatQ5_0, 64, 128, 2, 4, 1>) tensor_experts<FormatQ5_0, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q5_1")]] kernel decltype(tensor_experts<FormatQ5_1, 64, 128, 2, 4, 1>) tensor_experts<FormatQ5_1, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q8_0")]] kernel decltype(tensor_experts<FormatQ8_0, 64, 128, 2, 4, 1>) tensor_experts<FormatQ8_0, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q2_k")]] kernel decltype(tensor_experts<FormatQ2K, 64, 128, 2, 4, 1>) tensor_experts<FormatQ2K, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q3_k")]] kernel decltype(tensor_experts<FormatQ3K, 64, 128, 2, 4, 1>) tensor_experts<FormatQ3K, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q4_k")]] kernel decltype(tensor_experts<FormatQ4K, 64, 128, 2, 4, 1>) tensor_experts<FormatQ4K, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q5_k")]] kernel decltype(tensor_experts<FormatQ5K, 64, 128, 2, 4, 1>) tensor_experts<FormatQ5K, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_q6_k")]] kernel decltype(tensor_experts<FormatQ6K, 64, 128, 2, 4, 1>) tensor_experts<FormatQ6K, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq2_xxs")]] kernel decltype(tensor_experts<FormatIQ2XXS, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ2XXS, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq2_xs")]] kernel decltype(tensor_experts<FormatIQ2XS, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ2XS, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq3_xxs")]] kernel decltype(tensor_experts<FormatIQ3XXS, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ3XXS, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq1_s")]] kernel decltype(tensor_experts<FormatIQ1S, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ1S, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq4_nl")]] kernel decltype(tensor_experts<FormatIQ4NL, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ4NL, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq3_s")]] kernel decltype(tensor_experts<FormatIQ3S, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ3S, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq2_s")]] kernel decltype(tensor_experts<FormatIQ2S, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ2S, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq4_xs")]] kernel decltype(tensor_experts<FormatIQ4XS, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ4XS, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_iq1_m")]] kernel decltype(tensor_experts<FormatIQ1M, 64, 128, 2, 4, 1>) tensor_experts<FormatIQ1M, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_bf16")]] kernel decltype(tensor_experts<FormatBF16, 64, 128, 2, 4, 1>) tensor_experts<FormatBF16, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_mxfp4")]] kernel decltype(tensor_experts<FormatMXFP4, 64, 128, 2, 4, 1>) tensor_experts<FormatMXFP4, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_mlx_q2")]] kernel decltype(tensor_experts<FormatMlxQ2, 64, 128, 2, 4, 1>) tensor_experts<FormatMlxQ2, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_mlx_q3")]] kernel decltype(tensor_experts<FormatMlxQ3, 64, 128, 2, 4, 1>) tensor_experts<FormatMlxQ3, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_mlx_q4")]] kernel decltype(tensor_experts<FormatMlxQ4, 64, 128, 2, 4, 1>) tensor_experts<FormatMlxQ4, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_mlx_q5")]] kernel decltype(tensor_experts<FormatMlxQ5, 64, 128, 2, 4, 1>) tensor_experts<FormatMlxQ5, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_mlx_q6")]] kernel decltype(tensor_experts<FormatMlxQ6, 64, 128, 2, 4, 1>) tensor_experts<FormatMlxQ6, 64, 128, 2, 4, 1>;
template [[host_name("tensor_experts_mlx_q8")]] kernel decltype(tensor_experts<FormatMlxQ8, 64, 128, 2, 4, 1>) tensor_experts<FormatMlxQ8, 64, 128, 2, 4, 1>;
// end of formats
