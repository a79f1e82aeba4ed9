// expert_gemm_<format>: products of prompts with the matrices of their experts, tiles of 32 results. See include/expert_gemm.h.

#include "include/expert_gemm.h"

// for each format: expert_gemm_<format> is expert_gemm<Format, 32>
template [[host_name("expert_gemm_f32")]] kernel decltype(expert_gemm<FormatF32, 32>) expert_gemm<FormatF32, 32>;
template [[host_name("expert_gemm_f16")]] kernel decltype(expert_gemm<FormatF16, 32>) expert_gemm<FormatF16, 32>;
template [[host_name("expert_gemm_q4_0")]] kernel decltype(expert_gemm<FormatQ4_0, 32>) expert_gemm<FormatQ4_0, 32>;
template [[host_name("expert_gemm_q4_1")]] kernel decltype(expert_gemm<FormatQ4_1, 32>) expert_gemm<FormatQ4_1, 32>;
template [[host_name("expert_gemm_q5_0")]] kernel decltype(expert_gemm<FormatQ5_0, 32>) expert_gemm<FormatQ5_0, 32>;
template [[host_name("expert_gemm_q5_1")]] kernel decltype(expert_gemm<FormatQ5_1, 32>) expert_gemm<FormatQ5_1, 32>;
template [[host_name("expert_gemm_q8_0")]] kernel decltype(expert_gemm<FormatQ8_0, 32>) expert_gemm<FormatQ8_0, 32>;
template [[host_name("expert_gemm_q2_k")]] kernel decltype(expert_gemm<FormatQ2K, 32>) expert_gemm<FormatQ2K, 32>;
template [[host_name("expert_gemm_q3_k")]] kernel decltype(expert_gemm<FormatQ3K, 32>) expert_gemm<FormatQ3K, 32>;
template [[host_name("expert_gemm_q4_k")]] kernel decltype(expert_gemm<FormatQ4K, 32>) expert_gemm<FormatQ4K, 32>;
template [[host_name("expert_gemm_q5_k")]] kernel decltype(expert_gemm<FormatQ5K, 32>) expert_gemm<FormatQ5K, 32>;
template [[host_name("expert_gemm_q6_k")]] kernel decltype(expert_gemm<FormatQ6K, 32>) expert_gemm<FormatQ6K, 32>;
template [[host_name("expert_gemm_iq2_xxs")]] kernel decltype(expert_gemm<FormatIQ2XXS, 32>) expert_gemm<FormatIQ2XXS, 32>;
template [[host_name("expert_gemm_iq2_xs")]] kernel decltype(expert_gemm<FormatIQ2XS, 32>) expert_gemm<FormatIQ2XS, 32>;
template [[host_name("expert_gemm_iq3_xxs")]] kernel decltype(expert_gemm<FormatIQ3XXS, 32>) expert_gemm<FormatIQ3XXS, 32>;
template [[host_name("expert_gemm_iq1_s")]] kernel decltype(expert_gemm<FormatIQ1S, 32>) expert_gemm<FormatIQ1S, 32>;
template [[host_name("expert_gemm_iq4_nl")]] kernel decltype(expert_gemm<FormatIQ4NL, 32>) expert_gemm<FormatIQ4NL, 32>;
template [[host_name("expert_gemm_iq3_s")]] kernel decltype(expert_gemm<FormatIQ3S, 32>) expert_gemm<FormatIQ3S, 32>;
template [[host_name("expert_gemm_iq2_s")]] kernel decltype(expert_gemm<FormatIQ2S, 32>) expert_gemm<FormatIQ2S, 32>;
template [[host_name("expert_gemm_iq4_xs")]] kernel decltype(expert_gemm<FormatIQ4XS, 32>) expert_gemm<FormatIQ4XS, 32>;
template [[host_name("expert_gemm_iq1_m")]] kernel decltype(expert_gemm<FormatIQ1M, 32>) expert_gemm<FormatIQ1M, 32>;
template [[host_name("expert_gemm_bf16")]] kernel decltype(expert_gemm<FormatBF16, 32>) expert_gemm<FormatBF16, 32>;
template [[host_name("expert_gemm_mxfp4")]] kernel decltype(expert_gemm<FormatMXFP4, 32>) expert_gemm<FormatMXFP4, 32>;
template [[host_name("expert_gemm_mlx_q2")]] kernel decltype(expert_gemm<FormatMlxQ2, 32>) expert_gemm<FormatMlxQ2, 32>;
template [[host_name("expert_gemm_mlx_q3")]] kernel decltype(expert_gemm<FormatMlxQ3, 32>) expert_gemm<FormatMlxQ3, 32>;
template [[host_name("expert_gemm_mlx_q4")]] kernel decltype(expert_gemm<FormatMlxQ4, 32>) expert_gemm<FormatMlxQ4, 32>;
template [[host_name("expert_gemm_mlx_q5")]] kernel decltype(expert_gemm<FormatMlxQ5, 32>) expert_gemm<FormatMlxQ5, 32>;
template [[host_name("expert_gemm_mlx_q6")]] kernel decltype(expert_gemm<FormatMlxQ6, 32>) expert_gemm<FormatMlxQ6, 32>;
template [[host_name("expert_gemm_mlx_q8")]] kernel decltype(expert_gemm<FormatMlxQ8, 32>) expert_gemm<FormatMlxQ8, 32>;
// end of formats
