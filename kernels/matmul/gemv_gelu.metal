// gemv_<format>_gelu: the down projection of gelu(gate) * up. See include/gemv_gated.h.

#include "include/gemv_gated.h"

// for each format: gemv_<format>_gelu is gemv_gated<Format, GEMMParams, Gelu>
template [[host_name("gemv_f32_gelu")]] kernel decltype(gemv_gated<FormatF32, GEMMParams, Gelu>) gemv_gated<FormatF32, GEMMParams, Gelu>;
template [[host_name("gemv_f16_gelu")]] kernel decltype(gemv_gated<FormatF16, GEMMParams, Gelu>) gemv_gated<FormatF16, GEMMParams, Gelu>;
template [[host_name("gemv_q4_0_gelu")]] kernel decltype(gemv_gated<FormatQ4_0, GEMMParams, Gelu>) gemv_gated<FormatQ4_0, GEMMParams, Gelu>;
template [[host_name("gemv_q4_1_gelu")]] kernel decltype(gemv_gated<FormatQ4_1, GEMMParams, Gelu>) gemv_gated<FormatQ4_1, GEMMParams, Gelu>;
template [[host_name("gemv_q5_0_gelu")]] kernel decltype(gemv_gated<FormatQ5_0, GEMMParams, Gelu>) gemv_gated<FormatQ5_0, GEMMParams, Gelu>;
template [[host_name("gemv_q5_1_gelu")]] kernel decltype(gemv_gated<FormatQ5_1, GEMMParams, Gelu>) gemv_gated<FormatQ5_1, GEMMParams, Gelu>;
template [[host_name("gemv_q8_0_gelu")]] kernel decltype(gemv_gated<FormatQ8_0, GEMMParams, Gelu>) gemv_gated<FormatQ8_0, GEMMParams, Gelu>;
template [[host_name("gemv_q2_k_gelu")]] kernel decltype(gemv_gated<FormatQ2K, GEMMParams, Gelu>) gemv_gated<FormatQ2K, GEMMParams, Gelu>;
template [[host_name("gemv_q3_k_gelu")]] kernel decltype(gemv_gated<FormatQ3K, GEMMParams, Gelu>) gemv_gated<FormatQ3K, GEMMParams, Gelu>;
template [[host_name("gemv_q4_k_gelu")]] kernel decltype(gemv_gated<FormatQ4K, GEMMParams, Gelu>) gemv_gated<FormatQ4K, GEMMParams, Gelu>;
template [[host_name("gemv_q5_k_gelu")]] kernel decltype(gemv_gated<FormatQ5K, GEMMParams, Gelu>) gemv_gated<FormatQ5K, GEMMParams, Gelu>;
template [[host_name("gemv_q6_k_gelu")]] kernel decltype(gemv_gated<FormatQ6K, GEMMParams, Gelu>) gemv_gated<FormatQ6K, GEMMParams, Gelu>;
template [[host_name("gemv_iq2_xxs_gelu")]] kernel decltype(gemv_gated<FormatIQ2XXS, GEMMParams, Gelu>) gemv_gated<FormatIQ2XXS, GEMMParams, Gelu>;
template [[host_name("gemv_iq2_xs_gelu")]] kernel decltype(gemv_gated<FormatIQ2XS, GEMMParams, Gelu>) gemv_gated<FormatIQ2XS, GEMMParams, Gelu>;
template [[host_name("gemv_iq3_xxs_gelu")]] kernel decltype(gemv_gated<FormatIQ3XXS, GEMMParams, Gelu>) gemv_gated<FormatIQ3XXS, GEMMParams, Gelu>;
template [[host_name("gemv_iq1_s_gelu")]] kernel decltype(gemv_gated<FormatIQ1S, GEMMParams, Gelu>) gemv_gated<FormatIQ1S, GEMMParams, Gelu>;
template [[host_name("gemv_iq4_nl_gelu")]] kernel decltype(gemv_gated<FormatIQ4NL, GEMMParams, Gelu>) gemv_gated<FormatIQ4NL, GEMMParams, Gelu>;
template [[host_name("gemv_iq3_s_gelu")]] kernel decltype(gemv_gated<FormatIQ3S, GEMMParams, Gelu>) gemv_gated<FormatIQ3S, GEMMParams, Gelu>;
template [[host_name("gemv_iq2_s_gelu")]] kernel decltype(gemv_gated<FormatIQ2S, GEMMParams, Gelu>) gemv_gated<FormatIQ2S, GEMMParams, Gelu>;
template [[host_name("gemv_iq4_xs_gelu")]] kernel decltype(gemv_gated<FormatIQ4XS, GEMMParams, Gelu>) gemv_gated<FormatIQ4XS, GEMMParams, Gelu>;
template [[host_name("gemv_iq1_m_gelu")]] kernel decltype(gemv_gated<FormatIQ1M, GEMMParams, Gelu>) gemv_gated<FormatIQ1M, GEMMParams, Gelu>;
template [[host_name("gemv_bf16_gelu")]] kernel decltype(gemv_gated<FormatBF16, GEMMParams, Gelu>) gemv_gated<FormatBF16, GEMMParams, Gelu>;
template [[host_name("gemv_mxfp4_gelu")]] kernel decltype(gemv_gated<FormatMXFP4, GEMMParams, Gelu>) gemv_gated<FormatMXFP4, GEMMParams, Gelu>;
template [[host_name("gemv_mlx_q2_gelu")]] kernel decltype(gemv_gated<FormatMlxQ2, MLXParams, Gelu>) gemv_gated<FormatMlxQ2, MLXParams, Gelu>;
template [[host_name("gemv_mlx_q3_gelu")]] kernel decltype(gemv_gated<FormatMlxQ3, MLXParams, Gelu>) gemv_gated<FormatMlxQ3, MLXParams, Gelu>;
template [[host_name("gemv_mlx_q4_gelu")]] kernel decltype(gemv_gated<FormatMlxQ4, MLXParams, Gelu>) gemv_gated<FormatMlxQ4, MLXParams, Gelu>;
template [[host_name("gemv_mlx_q5_gelu")]] kernel decltype(gemv_gated<FormatMlxQ5, MLXParams, Gelu>) gemv_gated<FormatMlxQ5, MLXParams, Gelu>;
template [[host_name("gemv_mlx_q6_gelu")]] kernel decltype(gemv_gated<FormatMlxQ6, MLXParams, Gelu>) gemv_gated<FormatMlxQ6, MLXParams, Gelu>;
template [[host_name("gemv_mlx_q8_gelu")]] kernel decltype(gemv_gated<FormatMlxQ8, MLXParams, Gelu>) gemv_gated<FormatMlxQ8, MLXParams, Gelu>;
// end of formats
