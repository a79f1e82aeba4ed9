// expert_gemm_small_<format>: the same for few rows of each expert, tiles of 8 results. See include/expert_gemm.h.

#include "include/expert_gemm.h"

// for each format: expert_gemm_small_<format> is expert_gemm<Format, 8>
template [[host_name("expert_gemm_small_f32")]] kernel decltype(expert_gemm<FormatF32, 8>) expert_gemm<FormatF32, 8>;
template [[host_name("expert_gemm_small_f16")]] kernel decltype(expert_gemm<FormatF16, 8>) expert_gemm<FormatF16, 8>;
template [[host_name("expert_gemm_small_q4_0")]] kernel decltype(expert_gemm<FormatQ4_0, 8>) expert_gemm<FormatQ4_0, 8>;
template [[host_name("expert_gemm_small_q4_1")]] kernel decltype(expert_gemm<FormatQ4_1, 8>) expert_gemm<FormatQ4_1, 8>;
template [[host_name("expert_gemm_small_q5_0")]] kernel decltype(expert_gemm<FormatQ5_0, 8>) expert_gemm<FormatQ5_0, 8>;
template [[host_name("expert_gemm_small_q5_1")]] kernel decltype(expert_gemm<FormatQ5_1, 8>) expert_gemm<FormatQ5_1, 8>;
template [[host_name("expert_gemm_small_q8_0")]] kernel decltype(expert_gemm<FormatQ8_0, 8>) expert_gemm<FormatQ8_0, 8>;
template [[host_name("expert_gemm_small_q2_k")]] kernel decltype(expert_gemm<FormatQ2K, 8>) expert_gemm<FormatQ2K, 8>;
template [[host_name("expert_gemm_small_q3_k")]] kernel decltype(expert_gemm<FormatQ3K, 8>) expert_gemm<FormatQ3K, 8>;
template [[host_name("expert_gemm_small_q4_k")]] kernel decltype(expert_gemm<FormatQ4K, 8>) expert_gemm<FormatQ4K, 8>;
template [[host_name("expert_gemm_small_q5_k")]] kernel decltype(expert_gemm<FormatQ5K, 8>) expert_gemm<FormatQ5K, 8>;
template [[host_name("expert_gemm_small_q6_k")]] kernel decltype(expert_gemm<FormatQ6K, 8>) expert_gemm<FormatQ6K, 8>;
template [[host_name("expert_gemm_small_iq2_xxs")]] kernel decltype(expert_gemm<FormatIQ2XXS, 8>) expert_gemm<FormatIQ2XXS, 8>;
template [[host_name("expert_gemm_small_iq2_xs")]] kernel decltype(expert_gemm<FormatIQ2XS, 8>) expert_gemm<FormatIQ2XS, 8>;
template [[host_name("expert_gemm_small_iq3_xxs")]] kernel decltype(expert_gemm<FormatIQ3XXS, 8>) expert_gemm<FormatIQ3XXS, 8>;
template [[host_name("expert_gemm_small_iq1_s")]] kernel decltype(expert_gemm<FormatIQ1S, 8>) expert_gemm<FormatIQ1S, 8>;
template [[host_name("expert_gemm_small_iq4_nl")]] kernel decltype(expert_gemm<FormatIQ4NL, 8>) expert_gemm<FormatIQ4NL, 8>;
template [[host_name("expert_gemm_small_iq3_s")]] kernel decltype(expert_gemm<FormatIQ3S, 8>) expert_gemm<FormatIQ3S, 8>;
template [[host_name("expert_gemm_small_iq2_s")]] kernel decltype(expert_gemm<FormatIQ2S, 8>) expert_gemm<FormatIQ2S, 8>;
template [[host_name("expert_gemm_small_iq4_xs")]] kernel decltype(expert_gemm<FormatIQ4XS, 8>) expert_gemm<FormatIQ4XS, 8>;
template [[host_name("expert_gemm_small_iq1_m")]] kernel decltype(expert_gemm<FormatIQ1M, 8>) expert_gemm<FormatIQ1M, 8>;
template [[host_name("expert_gemm_small_bf16")]] kernel decltype(expert_gemm<FormatBF16, 8>) expert_gemm<FormatBF16, 8>;
template [[host_name("expert_gemm_small_mxfp4")]] kernel decltype(expert_gemm<FormatMXFP4, 8>) expert_gemm<FormatMXFP4, 8>;
template [[host_name("expert_gemm_small_mlx_q2")]] kernel decltype(expert_gemm<FormatMlxQ2, 8>) expert_gemm<FormatMlxQ2, 8>;
template [[host_name("expert_gemm_small_mlx_q3")]] kernel decltype(expert_gemm<FormatMlxQ3, 8>) expert_gemm<FormatMlxQ3, 8>;
template [[host_name("expert_gemm_small_mlx_q4")]] kernel decltype(expert_gemm<FormatMlxQ4, 8>) expert_gemm<FormatMlxQ4, 8>;
template [[host_name("expert_gemm_small_mlx_q5")]] kernel decltype(expert_gemm<FormatMlxQ5, 8>) expert_gemm<FormatMlxQ5, 8>;
template [[host_name("expert_gemm_small_mlx_q6")]] kernel decltype(expert_gemm<FormatMlxQ6, 8>) expert_gemm<FormatMlxQ6, 8>;
template [[host_name("expert_gemm_small_mlx_q8")]] kernel decltype(expert_gemm<FormatMlxQ8, 8>) expert_gemm<FormatMlxQ8, 8>;
// end of formats
