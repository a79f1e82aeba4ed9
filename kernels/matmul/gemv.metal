// gemv_<format>: the product of decoding, 4 rows a SIMD group. See include/gemv.h.

#include "include/gemv.h"

// for each format: gemv_<format> is gemv<Format, GEMMParams, 4>
template [[host_name("gemv_f32")]] kernel decltype(gemv<FormatF32, GEMMParams, 4>) gemv<FormatF32, GEMMParams, 4>;
template [[host_name("gemv_f16")]] kernel decltype(gemv<FormatF16, GEMMParams, 4>) gemv<FormatF16, GEMMParams, 4>;
template [[host_name("gemv_q4_0")]] kernel decltype(gemv<FormatQ4_0, GEMMParams, 4>) gemv<FormatQ4_0, GEMMParams, 4>;
template [[host_name("gemv_q4_1")]] kernel decltype(gemv<FormatQ4_1, GEMMParams, 4>) gemv<FormatQ4_1, GEMMParams, 4>;
template [[host_name("gemv_q5_0")]] kernel decltype(gemv<FormatQ5_0, GEMMParams, 4>) gemv<FormatQ5_0, GEMMParams, 4>;
template [[host_name("gemv_q5_1")]] kernel decltype(gemv<FormatQ5_1, GEMMParams, 4>) gemv<FormatQ5_1, GEMMParams, 4>;
template [[host_name("gemv_q8_0")]] kernel decltype(gemv<FormatQ8_0, GEMMParams, 4>) gemv<FormatQ8_0, GEMMParams, 4>;
template [[host_name("gemv_q2_k")]] kernel decltype(gemv<FormatQ2K, GEMMParams, 4>) gemv<FormatQ2K, GEMMParams, 4>;
template [[host_name("gemv_q3_k")]] kernel decltype(gemv<FormatQ3K, GEMMParams, 4>) gemv<FormatQ3K, GEMMParams, 4>;
template [[host_name("gemv_q4_k")]] kernel decltype(gemv<FormatQ4K, GEMMParams, 4>) gemv<FormatQ4K, GEMMParams, 4>;
template [[host_name("gemv_q5_k")]] kernel decltype(gemv<FormatQ5K, GEMMParams, 4>) gemv<FormatQ5K, GEMMParams, 4>;
template [[host_name("gemv_q6_k")]] kernel decltype(gemv<FormatQ6K, GEMMParams, 4>) gemv<FormatQ6K, GEMMParams, 4>;
template [[host_name("gemv_iq2_xxs")]] kernel decltype(gemv<FormatIQ2XXS, GEMMParams, 4>) gemv<FormatIQ2XXS, GEMMParams, 4>;
template [[host_name("gemv_iq2_xs")]] kernel decltype(gemv<FormatIQ2XS, GEMMParams, 4>) gemv<FormatIQ2XS, GEMMParams, 4>;
template [[host_name("gemv_iq3_xxs")]] kernel decltype(gemv<FormatIQ3XXS, GEMMParams, 4>) gemv<FormatIQ3XXS, GEMMParams, 4>;
template [[host_name("gemv_iq1_s")]] kernel decltype(gemv<FormatIQ1S, GEMMParams, 4>) gemv<FormatIQ1S, GEMMParams, 4>;
template [[host_name("gemv_iq4_nl")]] kernel decltype(gemv<FormatIQ4NL, GEMMParams, 4>) gemv<FormatIQ4NL, GEMMParams, 4>;
template [[host_name("gemv_iq3_s")]] kernel decltype(gemv<FormatIQ3S, GEMMParams, 4>) gemv<FormatIQ3S, GEMMParams, 4>;
template [[host_name("gemv_iq2_s")]] kernel decltype(gemv<FormatIQ2S, GEMMParams, 4>) gemv<FormatIQ2S, GEMMParams, 4>;
template [[host_name("gemv_iq4_xs")]] kernel decltype(gemv<FormatIQ4XS, GEMMParams, 4>) gemv<FormatIQ4XS, GEMMParams, 4>;
template [[host_name("gemv_iq1_m")]] kernel decltype(gemv<FormatIQ1M, GEMMParams, 4>) gemv<FormatIQ1M, GEMMParams, 4>;
template [[host_name("gemv_bf16")]] kernel decltype(gemv<FormatBF16, GEMMParams, 4>) gemv<FormatBF16, GEMMParams, 4>;
template [[host_name("gemv_mxfp4")]] kernel decltype(gemv<FormatMXFP4, GEMMParams, 4>) gemv<FormatMXFP4, GEMMParams, 4>;
template [[host_name("gemv_mlx_q2")]] kernel decltype(gemv<FormatMlxQ2, MLXParams, 4>) gemv<FormatMlxQ2, MLXParams, 4>;
template [[host_name("gemv_mlx_q3")]] kernel decltype(gemv<FormatMlxQ3, MLXParams, 4>) gemv<FormatMlxQ3, MLXParams, 4>;
template [[host_name("gemv_mlx_q4")]] kernel decltype(gemv<FormatMlxQ4, MLXParams, 4>) gemv<FormatMlxQ4, MLXParams, 4>;
template [[host_name("gemv_mlx_q5")]] kernel decltype(gemv<FormatMlxQ5, MLXParams, 4>) gemv<FormatMlxQ5, MLXParams, 4>;
template [[host_name("gemv_mlx_q6")]] kernel decltype(gemv<FormatMlxQ6, MLXParams, 4>) gemv<FormatMlxQ6, MLXParams, 4>;
template [[host_name("gemv_mlx_q8")]] kernel decltype(gemv<FormatMlxQ8, MLXParams, 4>) gemv<FormatMlxQ8, MLXParams, 4>;
// end of formats
