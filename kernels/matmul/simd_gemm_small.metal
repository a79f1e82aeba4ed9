// simd_gemm_small_<format>: a short prefill, tiles of 8 x 64. See include/gemm.h.

#include "include/gemm.h"

// for each format: simd_gemm_small_<format> is simd_gemm<Format, GEMMParams, 8>
template [[host_name("simd_gemm_small_f32")]] kernel decltype(simd_gemm<FormatF32, GEMMParams, 8>) simd_gemm<FormatF32, GEMMParams, 8>;
template [[host_name("simd_gemm_small_f16")]] kernel decltype(simd_gemm<FormatF16, GEMMParams, 8>) simd_gemm<FormatF16, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q4_0")]] kernel decltype(simd_gemm<FormatQ4_0, GEMMParams, 8>) simd_gemm<FormatQ4_0, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q4_1")]] kernel decltype(simd_gemm<FormatQ4_1, GEMMParams, 8>) simd_gemm<FormatQ4_1, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q5_0")]] kernel decltype(simd_gemm<FormatQ5_0, GEMMParams, 8>) simd_gemm<FormatQ5_0, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q5_1")]] kernel decltype(simd_gemm<FormatQ5_1, GEMMParams, 8>) simd_gemm<FormatQ5_1, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q8_0")]] kernel decltype(simd_gemm<FormatQ8_0, GEMMParams, 8>) simd_gemm<FormatQ8_0, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q2_k")]] kernel decltype(simd_gemm<FormatQ2K, GEMMParams, 8>) simd_gemm<FormatQ2K, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q3_k")]] kernel decltype(simd_gemm<FormatQ3K, GEMMParams, 8>) simd_gemm<FormatQ3K, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q4_k")]] kernel decltype(simd_gemm<FormatQ4K, GEMMParams, 8>) simd_gemm<FormatQ4K, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q5_k")]] kernel decltype(simd_gemm<FormatQ5K, GEMMParams, 8>) simd_gemm<FormatQ5K, GEMMParams, 8>;
template [[host_name("simd_gemm_small_q6_k")]] kernel decltype(simd_gemm<FormatQ6K, GEMMParams, 8>) simd_gemm<FormatQ6K, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq2_xxs")]] kernel decltype(simd_gemm<FormatIQ2XXS, GEMMParams, 8>) simd_gemm<FormatIQ2XXS, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq2_xs")]] kernel decltype(simd_gemm<FormatIQ2XS, GEMMParams, 8>) simd_gemm<FormatIQ2XS, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq3_xxs")]] kernel decltype(simd_gemm<FormatIQ3XXS, GEMMParams, 8>) simd_gemm<FormatIQ3XXS, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq1_s")]] kernel decltype(simd_gemm<FormatIQ1S, GEMMParams, 8>) simd_gemm<FormatIQ1S, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq4_nl")]] kernel decltype(simd_gemm<FormatIQ4NL, GEMMParams, 8>) simd_gemm<FormatIQ4NL, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq3_s")]] kernel decltype(simd_gemm<FormatIQ3S, GEMMParams, 8>) simd_gemm<FormatIQ3S, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq2_s")]] kernel decltype(simd_gemm<FormatIQ2S, GEMMParams, 8>) simd_gemm<FormatIQ2S, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq4_xs")]] kernel decltype(simd_gemm<FormatIQ4XS, GEMMParams, 8>) simd_gemm<FormatIQ4XS, GEMMParams, 8>;
template [[host_name("simd_gemm_small_iq1_m")]] kernel decltype(simd_gemm<FormatIQ1M, GEMMParams, 8>) simd_gemm<FormatIQ1M, GEMMParams, 8>;
template [[host_name("simd_gemm_small_bf16")]] kernel decltype(simd_gemm<FormatBF16, GEMMParams, 8>) simd_gemm<FormatBF16, GEMMParams, 8>;
template [[host_name("simd_gemm_small_mxfp4")]] kernel decltype(simd_gemm<FormatMXFP4, GEMMParams, 8>) simd_gemm<FormatMXFP4, GEMMParams, 8>;
template [[host_name("simd_gemm_small_mlx_q2")]] kernel decltype(simd_gemm<FormatMlxQ2, MLXParams, 8>) simd_gemm<FormatMlxQ2, MLXParams, 8>;
template [[host_name("simd_gemm_small_mlx_q3")]] kernel decltype(simd_gemm<FormatMlxQ3, MLXParams, 8>) simd_gemm<FormatMlxQ3, MLXParams, 8>;
template [[host_name("simd_gemm_small_mlx_q4")]] kernel decltype(simd_gemm<FormatMlxQ4, MLXParams, 8>) simd_gemm<FormatMlxQ4, MLXParams, 8>;
template [[host_name("simd_gemm_small_mlx_q5")]] kernel decltype(simd_gemm<FormatMlxQ5, MLXParams, 8>) simd_gemm<FormatMlxQ5, MLXParams, 8>;
template [[host_name("simd_gemm_small_mlx_q6")]] kernel decltype(simd_gemm<FormatMlxQ6, MLXParams, 8>) simd_gemm<FormatMlxQ6, MLXParams, 8>;
template [[host_name("simd_gemm_small_mlx_q8")]] kernel decltype(simd_gemm<FormatMlxQ8, MLXParams, 8>) simd_gemm<FormatMlxQ8, MLXParams, 8>;
// end of formats
