// tensor_experts_small_<format>: experts of few rows each, 16 x 64, two teams split K. See include/tensor_experts.h.

#include "include/tensor_experts.h"

// for each format: tensor_experts_small_<format> is tensor_experts<Format, 16, 64, 1, 4, 2>
template [[host_name("tensor_experts_small_f16")]] kernel decltype(tensor_experts<FormatF16, 16, 64, 1, 4, 2>) tensor_experts<FormatF16, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q4_0")]] kernel decltype(tensor_experts<FormatQ4_0, 16, 64, 1, 4, 2>) tensor_experts<FormatQ4_0, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q4_1")]] kernel decltype(tensor_experts<FormatQ4_1, 16, 64, 1, 4, 2>) tensor_experts<FormatQ4_1, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q5_0")]] kernel decltype(tensor_experts<FormatQ5_0, 16, 64, 1, 4, 2>) tensor_experts<FormatQ5_0, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q5_1")]] kernel decltype(tensor_experts<FormatQ5_1, 16, 64, 1, 4, 2>) tensor_experts<FormatQ5_1, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q8_0")]] kernel decltype(tensor_experts<FormatQ8_0, 16, 64, 1, 4, 2>) tensor_experts<FormatQ8_0, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q2_k")]] kernel decltype(tensor_experts<FormatQ2K, 16, 64, 1, 4, 2>) tensor_experts<FormatQ2K, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q3_k")]] kernel decltype(tensor_experts<FormatQ3K, 16, 64, 1, 4, 2>) tensor_experts<FormatQ3K, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q4_k")]] kernel decltype(tensor_experts<FormatQ4K, 16, 64, 1, 4, 2>) tensor_experts<FormatQ4K, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q5_k")]] kernel decltype(tensor_experts<FormatQ5K, 16, 64, 1, 4, 2>) tensor_experts<FormatQ5K, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_q6_k")]] kernel decltype(tensor_experts<FormatQ6K, 16, 64, 1, 4, 2>) tensor_experts<FormatQ6K, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq2_xxs")]] kernel decltype(tensor_experts<FormatIQ2XXS, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ2XXS, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq2_xs")]] kernel decltype(tensor_experts<FormatIQ2XS, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ2XS, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq3_xxs")]] kernel decltype(tensor_experts<FormatIQ3XXS, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ3XXS, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq1_s")]] kernel decltype(tensor_experts<FormatIQ1S, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ1S, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq4_nl")]] kernel decltype(tensor_experts<FormatIQ4NL, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ4NL, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq3_s")]] kernel decltype(tensor_experts<FormatIQ3S, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ3S, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq2_s")]] kernel decltype(tensor_experts<FormatIQ2S, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ2S, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq4_xs")]] kernel decltype(tensor_experts<FormatIQ4XS, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ4XS, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_iq1_m")]] kernel decltype(tensor_experts<FormatIQ1M, 16, 64, 1, 4, 2>) tensor_experts<FormatIQ1M, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_bf16")]] kernel decltype(tensor_experts<FormatBF16, 16, 64, 1, 4, 2>) tensor_experts<FormatBF16, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_mxfp4")]] kernel decltype(tensor_experts<FormatMXFP4, 16, 64, 1, 4, 2>) tensor_experts<FormatMXFP4, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_mlx_q2")]] kernel decltype(tensor_experts<FormatMlxQ2, 16, 64, 1, 4, 2>) tensor_experts<FormatMlxQ2, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_mlx_q3")]] kernel decltype(tensor_experts<FormatMlxQ3, 16, 64, 1, 4, 2>) tensor_experts<FormatMlxQ3, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_mlx_q4")]] kernel decltype(tensor_experts<FormatMlxQ4, 16, 64, 1, 4, 2>) tensor_experts<FormatMlxQ4, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_mlx_q5")]] kernel decltype(tensor_experts<FormatMlxQ5, 16, 64, 1, 4, 2>) tensor_experts<FormatMlxQ5, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_mlx_q6")]] kernel decltype(tensor_experts<FormatMlxQ6, 16, 64, 1, 4, 2>) tensor_experts<FormatMlxQ6, 16, 64, 1, 4, 2>;
template [[host_name("tensor_experts_small_mlx_q8")]] kernel decltype(tensor_experts<FormatMlxQ8, 16, 64, 1, 4, 2>) tensor_experts<FormatMlxQ8, 16, 64, 1, 4, 2>;
// end of formats
