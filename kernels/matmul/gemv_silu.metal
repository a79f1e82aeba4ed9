// gemv_<format>_silu: the down projection of silu(gate) * up. See include/gemv_gated.h.

#include "include/gemv_gated.h"

// for each format: gemv_<format>_silu is gemv_gated<Format, GEMMParams, Silu>
template [[host_name("gemv_f32_silu")]] kernel decltype(gemv_gated<FormatF32, GEMMParams, Silu>) gemv_gated<FormatF32, GEMMParams, Silu>;
template [[host_name("gemv_f16_silu")]] kernel decltype(gemv_gated<FormatF16, GEMMParams, Silu>) gemv_gated<FormatF16, GEMMParams, Silu>;
template [[host_name("gemv_q4_0_silu")]] kernel decltype(gemv_gated<FormatQ4_0, GEMMParams, Silu>) gemv_gated<FormatQ4_0, GEMMParams, Silu>;
template [[host_name("gemv_q4_1_silu")]] kernel decltype(gemv_gated<FormatQ4_1, GEMMParams, Silu>) gemv_gated<FormatQ4_1, GEMMParams, Silu>;
template [[host_name("gemv_q5_0_silu")]] kernel decltype(gemv_gated<FormatQ5_0, GEMMParams, Silu>) gemv_gated<FormatQ5_0, GEMMParams, Silu>;
template [[host_name("gemv_q5_1_silu")]] kernel decltype(gemv_gated<FormatQ5_1, GEMMParams, Silu>) gemv_gated<FormatQ5_1, GEMMParams, Silu>;
template [[host_name("gemv_q8_0_silu")]] kernel decltype(gemv_gated<FormatQ8_0, GEMMParams, Silu>) gemv_gated<FormatQ8_0, GEMMParams, Silu>;
template [[host_name("gemv_q2_k_silu")]] kernel decltype(gemv_gated<FormatQ2K, GEMMParams, Silu>) gemv_gated<FormatQ2K, GEMMParams, Silu>;
template [[host_name("gemv_q3_k_silu")]] kernel decltype(gemv_gated<FormatQ3K, GEMMParams, Silu>) gemv_gated<FormatQ3K, GEMMParams, Silu>;
template [[host_name("gemv_q4_k_silu")]] kernel decltype(gemv_gated<FormatQ4K, GEMMParams, Silu>) gemv_gated<FormatQ4K, GEMMParams, Silu>;
template [[host_name("gemv_q5_k_silu")]] kernel decltype(gemv_gated<FormatQ5K, GEMMParams, Silu>) gemv_gated<FormatQ5K, GEMMParams, Silu>;
template [[host_name("gemv_q6_k_silu")]] kernel decltype(gemv_gated<FormatQ6K, GEMMParams, Silu>) gemv_gated<FormatQ6K, GEMMParams, Silu>;
template [[host_name("gemv_iq2_xxs_silu")]] kernel decltype(gemv_gated<FormatIQ2XXS, GEMMParams, Silu>) gemv_gated<FormatIQ2XXS, GEMMParams, Silu>;
template [[host_name("gemv_iq2_xs_silu")]] kernel decltype(gemv_gated<FormatIQ2XS, GEMMParams, Silu>) gemv_gated<FormatIQ2XS, GEMMParams, Silu>;
template [[host_name("gemv_iq3_xxs_silu")]] kernel decltype(gemv_gated<FormatIQ3XXS, GEMMParams, Silu>) gemv_gated<FormatIQ3XXS, GEMMParams, Silu>;
template [[host_name("gemv_iq1_s_silu")]] kernel decltype(gemv_gated<FormatIQ1S, GEMMParams, Silu>) gemv_gated<FormatIQ1S, GEMMParams, Silu>;
template [[host_name("gemv_iq4_nl_silu")]] kernel decltype(gemv_gated<FormatIQ4NL, GEMMParams, Silu>) gemv_gated<FormatIQ4NL, GEMMParams, Silu>;
template [[host_name("gemv_iq3_s_silu")]] kernel decltype(gemv_gated<FormatIQ3S, GEMMParams, Silu>) gemv_gated<FormatIQ3S, GEMMParams, Silu>;
template [[host_name("gemv_iq2_s_silu")]] kernel decltype(gemv_gated<FormatIQ2S, GEMMParams, Silu>) gemv_gated<FormatIQ2S, GEMMParams, Silu>;
template [[host_name("gemv_iq4_xs_silu")]] kernel decltype(gemv_gated<FormatIQ4XS, GEMMParams, Silu>) gemv_gated<FormatIQ4XS, GEMMParams, Silu>;
template [[host_name("gemv_iq1_m_silu")]] kernel decltype(gemv_gated<FormatIQ1M, GEMMParams, Silu>) gemv_gated<FormatIQ1M, GEMMParams, Silu>;
template [[host_name("gemv_bf16_silu")]] kernel decltype(gemv_gated<FormatBF16, GEMMParams, Silu>) gemv_gated<FormatBF16, GEMMParams, Silu>;
template [[host_name("gemv_mxfp4_silu")]] kernel decltype(gemv_gated<FormatMXFP4, GEMMParams, Silu>) gemv_gated<FormatMXFP4, GEMMParams, Silu>;
template [[host_name("gemv_mlx_q2_silu")]] kernel decltype(gemv_gated<FormatMlxQ2, MLXParams, Silu>) gemv_gated<FormatMlxQ2, MLXParams, Silu>;
template [[host_name("gemv_mlx_q3_silu")]] kernel decltype(gemv_gated<FormatMlxQ3, MLXParams, Silu>) gemv_gated<FormatMlxQ3, MLXParams, Silu>;
template [[host_name("gemv_mlx_q4_silu")]] kernel decltype(gemv_gated<FormatMlxQ4, MLXParams, Silu>) gemv_gated<FormatMlxQ4, MLXParams, Silu>;
template [[host_name("gemv_mlx_q5_silu")]] kernel decltype(gemv_gated<FormatMlxQ5, MLXParams, Silu>) gemv_gated<FormatMlxQ5, MLXParams, Silu>;
template [[host_name("gemv_mlx_q6_silu")]] kernel decltype(gemv_gated<FormatMlxQ6, MLXParams, Silu>) gemv_gated<FormatMlxQ6, MLXParams, Silu>;
template [[host_name("gemv_mlx_q8_silu")]] kernel decltype(gemv_gated<FormatMlxQ8, MLXParams, Silu>) gemv_gated<FormatMlxQ8, MLXParams, Silu>;
// end of formats
