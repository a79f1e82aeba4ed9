// gemv_wide_<format>: 8 rows a SIMD group, for outputs as wide as a vocabulary, where there are more
// than enough rows to fill the GPU and each load of x serves twice as many. See include/gemv.h.

#include "include/gemv.h"

// for each format: gemv_wide_<format> is gemv<Format, GEMMParams, 8>
template [[host_name("gemv_wide_f32")]] kernel decltype(gemv<FormatF32, GEMMParams, 8>) gemv<FormatF32, GEMMParams, 8>;
template [[host_name("gemv_wide_f16")]] kernel decltype(gemv<FormatF16, GEMMParams, 8>) gemv<FormatF16, GEMMParams, 8>;
template [[host_name("gemv_wide_q4_0")]] kernel decltype(gemv<FormatQ4_0, GEMMParams, 8>) gemv<FormatQ4_0, GEMMParams, 8>;
template [[host_name("gemv_wide_q4_1")]] kernel decltype(gemv<FormatQ4_1, GEMMParams, 8>) gemv<FormatQ4_1, GEMMParams, 8>;
template [[host_name("gemv_wide_q5_0")]] kernel decltype(gemv<FormatQ5_0, GEMMParams, 8>) gemv<FormatQ5_0, GEMMParams, 8>;
template [[host_name("gemv_wide_q5_1")]] kernel decltype(gemv<FormatQ5_1, GEMMParams, 8>) gemv<FormatQ5_1, GEMMParams, 8>;
template [[host_name("gemv_wide_q8_0")]] kernel decltype(gemv<FormatQ8_0, GEMMParams, 8>) gemv<FormatQ8_0, GEMMParams, 8>;
template [[host_name("gemv_wide_q2_k")]] kernel decltype(gemv<FormatQ2K, GEMMParams, 8>) gemv<FormatQ2K, GEMMParams, 8>;
template [[host_name("gemv_wide_q3_k")]] kernel decltype(gemv<FormatQ3K, GEMMParams, 8>) gemv<FormatQ3K, GEMMParams, 8>;
template [[host_name("gemv_wide_q4_k")]] kernel decltype(gemv<FormatQ4K, GEMMParams, 8>) gemv<FormatQ4K, GEMMParams, 8>;
template [[host_name("gemv_wide_q5_k")]] kernel decltype(gemv<FormatQ5K, GEMMParams, 8>) gemv<FormatQ5K, GEMMParams, 8>;
template [[host_name("gemv_wide_q6_k")]] kernel decltype(gemv<FormatQ6K, GEMMParams, 8>) gemv<FormatQ6K, GEMMParams, 8>;
template [[host_name("gemv_wide_iq2_xxs")]] kernel decltype(gemv<FormatIQ2XXS, GEMMParams, 8>) gemv<FormatIQ2XXS, GEMMParams, 8>;
template [[host_name("gemv_wide_iq2_xs")]] kernel decltype(gemv<FormatIQ2XS, GEMMParams, 8>) gemv<FormatIQ2XS, GEMMParams, 8>;
template [[host_name("gemv_wide_iq3_xxs")]] kernel decltype(gemv<FormatIQ3XXS, GEMMParams, 8>) gemv<FormatIQ3XXS, GEMMParams, 8>;
template [[host_name("gemv_wide_iq1_s")]] kernel decltype(gemv<FormatIQ1S, GEMMParams, 8>) gemv<FormatIQ1S, GEMMParams, 8>;
template [[host_name("gemv_wide_iq4_nl")]] kernel decltype(gemv<FormatIQ4NL, GEMMParams, 8>) gemv<FormatIQ4NL, GEMMParams, 8>;
template [[host_name("gemv_wide_iq3_s")]] kernel decltype(gemv<FormatIQ3S, GEMMParams, 8>) gemv<FormatIQ3S, GEMMParams, 8>;
template [[host_name("gemv_wide_iq2_s")]] kernel decltype(gemv<FormatIQ2S, GEMMParams, 8>) gemv<FormatIQ2S, GEMMParams, 8>;
template [[host_name("gemv_wide_iq4_xs")]] kernel decltype(gemv<FormatIQ4XS, GEMMParams, 8>) gemv<FormatIQ4XS, GEMMParams, 8>;
template [[host_name("gemv_wide_iq1_m")]] kernel decltype(gemv<FormatIQ1M, GEMMParams, 8>) gemv<FormatIQ1M, GEMMParams, 8>;
template [[host_name("gemv_wide_bf16")]] kernel decltype(gemv<FormatBF16, GEMMParams, 8>) gemv<FormatBF16, GEMMParams, 8>;
template [[host_name("gemv_wide_mxfp4")]] kernel decltype(gemv<FormatMXFP4, GEMMParams, 8>) gemv<FormatMXFP4, GEMMParams, 8>;
template [[host_name("gemv_wide_mlx_q2")]] kernel decltype(gemv<FormatMlxQ2, MLXParams, 8>) gemv<FormatMlxQ2, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q3")]] kernel decltype(gemv<FormatMlxQ3, MLXParams, 8>) gemv<FormatMlxQ3, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q4")]] kernel decltype(gemv<FormatMlxQ4, MLXParams, 8>) gemv<FormatMlxQ4, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q5")]] kernel decltype(gemv<FormatMlxQ5, MLXParams, 8>) gemv<FormatMlxQ5, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q6")]] kernel decltype(gemv<FormatMlxQ6, MLXParams, 8>) gemv<FormatMlxQ6, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q8")]] kernel decltype(gemv<FormatMlxQ8, MLXParams, 8>) gemv<FormatMlxQ8, MLXParams, 8>;
// end of formats
