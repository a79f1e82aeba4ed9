// gemv_batched_<format>: 2 to 16 vectors, weights read once. See include/gemv_batched.h.

#include "include/gemv_batched.h"

// for each format: gemv_batched_<format> is gemv_batched<Format, GEMMParams>
template [[host_name("gemv_batched_f32")]] kernel decltype(gemv_batched<FormatF32, GEMMParams>) gemv_batched<FormatF32, GEMMParams>;
template [[host_name("gemv_batched_f16")]] kernel decltype(gemv_batched<FormatF16, GEMMParams>) gemv_batched<FormatF16, GEMMParams>;
template [[host_name("gemv_batched_q4_0")]] kernel decltype(gemv_batched<FormatQ4_0, GEMMParams>) gemv_batched<FormatQ4_0, GEMMParams>;
template [[host_name("gemv_batched_q4_1")]] kernel decltype(gemv_batched<FormatQ4_1, GEMMParams>) gemv_batched<FormatQ4_1, GEMMParams>;
template [[host_name("gemv_batched_q5_0")]] kernel decltype(gemv_batched<FormatQ5_0, GEMMParams>) gemv_batched<FormatQ5_0, GEMMParams>;
template [[host_name("gemv_batched_q5_1")]] kernel decltype(gemv_batched<FormatQ5_1, GEMMParams>) gemv_batched<FormatQ5_1, GEMMParams>;
template [[host_name("gemv_batched_q8_0")]] kernel decltype(gemv_batched<FormatQ8_0, GEMMParams>) gemv_batched<FormatQ8_0, GEMMParams>;
template [[host_name("gemv_batched_q2_k")]] kernel decltype(gemv_batched<FormatQ2K, GEMMParams>) gemv_batched<FormatQ2K, GEMMParams>;
template [[host_name("gemv_batched_q3_k")]] kernel decltype(gemv_batched<FormatQ3K, GEMMParams>) gemv_batched<FormatQ3K, GEMMParams>;
template [[host_name("gemv_batched_q4_k")]] kernel decltype(gemv_batched<FormatQ4K, GEMMParams>) gemv_batched<FormatQ4K, GEMMParams>;
template [[host_name("gemv_batched_q5_k")]] kernel decltype(gemv_batched<FormatQ5K, GEMMParams>) gemv_batched<FormatQ5K, GEMMParams>;
template [[host_name("gemv_batched_q6_k")]] kernel decltype(gemv_batched<FormatQ6K, GEMMParams>) gemv_batched<FormatQ6K, GEMMParams>;
template [[host_name("gemv_batched_iq2_xxs")]] kernel decltype(gemv_batched<FormatIQ2XXS, GEMMParams>) gemv_batched<FormatIQ2XXS, GEMMParams>;
template [[host_name("gemv_batched_iq2_xs")]] kernel decltype(gemv_batched<FormatIQ2XS, GEMMParams>) gemv_batched<FormatIQ2XS, GEMMParams>;
template [[host_name("gemv_batched_iq3_xxs")]] kernel decltype(gemv_batched<FormatIQ3XXS, GEMMParams>) gemv_batched<FormatIQ3XXS, GEMMParams>;
template [[host_name("gemv_batched_iq1_s")]] kernel decltype(gemv_batched<FormatIQ1S, GEMMParams>) gemv_batched<FormatIQ1S, GEMMParams>;
template [[host_name("gemv_batched_iq4_nl")]] kernel decltype(gemv_batched<FormatIQ4NL, GEMMParams>) gemv_batched<FormatIQ4NL, GEMMParams>;
template [[host_name("gemv_batched_iq3_s")]] kernel decltype(gemv_batched<FormatIQ3S, GEMMParams>) gemv_batched<FormatIQ3S, GEMMParams>;
template [[host_name("gemv_batched_iq2_s")]] kernel decltype(gemv_batched<FormatIQ2S, GEMMParams>) gemv_batched<FormatIQ2S, GEMMParams>;
template [[host_name("gemv_batched_iq4_xs")]] kernel decltype(gemv_batched<FormatIQ4XS, GEMMParams>) gemv_batched<FormatIQ4XS, GEMMParams>;
template [[host_name("gemv_batched_iq1_m")]] kernel decltype(gemv_batched<FormatIQ1M, GEMMParams>) gemv_batched<FormatIQ1M, GEMMParams>;
template [[host_name("gemv_batched_bf16")]] kernel decltype(gemv_batched<FormatBF16, GEMMParams>) gemv_batched<FormatBF16, GEMMParams>;
template [[host_name("gemv_batched_mxfp4")]] kernel decltype(gemv_batched<FormatMXFP4, GEMMParams>) gemv_batched<FormatMXFP4, GEMMParams>;
template [[host_name("gemv_batched_mlx_q2")]] kernel decltype(gemv_batched<FormatMlxQ2, MLXParams>) gemv_batched<FormatMlxQ2, MLXParams>;
template [[host_name("gemv_batched_mlx_q3")]] kernel decltype(gemv_batched<FormatMlxQ3, MLXParams>) gemv_batched<FormatMlxQ3, MLXParams>;
template [[host_name("gemv_batched_mlx_q4")]] kernel decltype(gemv_batched<FormatMlxQ4, MLXParams>) gemv_batched<FormatMlxQ4, MLXParams>;
template [[host_name("gemv_batched_mlx_q5")]] kernel decltype(gemv_batched<FormatMlxQ5, MLXParams>) gemv_batched<FormatMlxQ5, MLXParams>;
template [[host_name("gemv_batched_mlx_q6")]] kernel decltype(gemv_batched<FormatMlxQ6, MLXParams>) gemv_batched<FormatMlxQ6, MLXParams>;
template [[host_name("gemv_batched_mlx_q8")]] kernel decltype(gemv_batched<FormatMlxQ8, MLXParams>) gemv_batched<FormatMlxQ8, MLXParams>;
// end of formats
