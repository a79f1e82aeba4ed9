// decode_gemv_<format>: the product of decoding, four weights at a time. See include/decode_gemv.h.

#include "include/decode_gemv.h"

// for each format: decode_gemv_<format> is decode_gemv<Format, GEMMParams, 4>
template [[host_name("decode_gemv_f32")]] kernel decltype(decode_gemv<FormatF32, GEMMParams, 4>) decode_gemv<FormatF32, GEMMParams, 4>;
template [[host_name("decode_gemv_f16")]] kernel decltype(decode_gemv<FormatF16, GEMMParams, 4>) decode_gemv<FormatF16, GEMMParams, 4>;
template [[host_name("decode_gemv_q4_0")]] kernel decltype(decode_gemv<FormatQ4_0, GEMMParams, 4>) decode_gemv<FormatQ4_0, GEMMParams, 4>;
template [[host_name("decode_gemv_q4_1")]] kernel decltype(decode_gemv<FormatQ4_1, GEMMParams, 4>) decode_gemv<FormatQ4_1, GEMMParams, 4>;
template [[host_name("decode_gemv_q5_0")]] kernel decltype(decode_gemv<FormatQ5_0, GEMMParams, 4>) decode_gemv<FormatQ5_0, GEMMParams, 4>;
template [[host_name("decode_gemv_q5_1")]] kernel decltype(decode_gemv<FormatQ5_1, GEMMParams, 4>) decode_gemv<FormatQ5_1, GEMMParams, 4>;
template [[host_name("decode_gemv_q8_0")]] kernel decltype(decode_gemv<FormatQ8_0, GEMMParams, 4>) decode_gemv<FormatQ8_0, GEMMParams, 4>;
template [[host_name("decode_gemv_q2_k")]] kernel decltype(decode_gemv<FormatQ2K, GEMMParams, 4>) decode_gemv<FormatQ2K, GEMMParams, 4>;
template [[host_name("decode_gemv_q3_k")]] kernel decltype(decode_gemv<FormatQ3K, GEMMParams, 4>) decode_gemv<FormatQ3K, GEMMParams, 4>;
template [[host_name("decode_gemv_q4_k")]] kernel decltype(decode_gemv<FormatQ4K, GEMMParams, 4>) decode_gemv<FormatQ4K, GEMMParams, 4>;
template [[host_name("decode_gemv_q5_k")]] kernel decltype(decode_gemv<FormatQ5K, GEMMParams, 4>) decode_gemv<FormatQ5K, GEMMParams, 4>;
template [[host_name("decode_gemv_q6_k")]] kernel decltype(decode_gemv<FormatQ6K, GEMMParams, 4>) decode_gemv<FormatQ6K, GEMMParams, 4>;
template [[host_name("decode_gemv_iq2_xxs")]] kernel decltype(decode_gemv<FormatIQ2XXS, GEMMParams, 4>) decode_gemv<FormatIQ2XXS, GEMMParams, 4>;
template [[host_name("decode_gemv_iq2_xs")]] kernel decltype(decode_gemv<FormatIQ2XS, GEMMParams, 4>) decode_gemv<FormatIQ2XS, GEMMParams, 4>;
template [[host_name("decode_gemv_iq3_xxs")]] kernel decltype(decode_gemv<FormatIQ3XXS, GEMMParams, 4>) decode_gemv<FormatIQ3XXS, GEMMParams, 4>;
template [[host_name("decode_gemv_iq1_s")]] kernel decltype(decode_gemv<FormatIQ1S, GEMMParams, 4>) decode_gemv<FormatIQ1S, GEMMParams, 4>;
template [[host_name("decode_gemv_iq4_nl")]] kernel decltype(decode_gemv<FormatIQ4NL, GEMMParams, 4>) decode_gemv<FormatIQ4NL, GEMMParams, 4>;
template [[host_name("decode_gemv_iq3_s")]] kernel decltype(decode_gemv<FormatIQ3S, GEMMParams, 4>) decode_gemv<FormatIQ3S, GEMMParams, 4>;
template [[host_name("decode_gemv_iq2_s")]] kernel decltype(decode_gemv<FormatIQ2S, GEMMParams, 4>) decode_gemv<FormatIQ2S, GEMMParams, 4>;
template [[host_name("decode_gemv_iq4_xs")]] kernel decltype(decode_gemv<FormatIQ4XS, GEMMParams, 4>) decode_gemv<FormatIQ4XS, GEMMParams, 4>;
template [[host_name("decode_gemv_iq1_m")]] kernel decltype(decode_gemv<FormatIQ1M, GEMMParams, 4>) decode_gemv<FormatIQ1M, GEMMParams, 4>;
template [[host_name("decode_gemv_bf16")]] kernel decltype(decode_gemv<FormatBF16, GEMMParams, 4>) decode_gemv<FormatBF16, GEMMParams, 4>;
template [[host_name("decode_gemv_mxfp4")]] kernel decltype(decode_gemv<FormatMXFP4, GEMMParams, 4>) decode_gemv<FormatMXFP4, GEMMParams, 4>;
template [[host_name("decode_gemv_mlx_q2")]] kernel decltype(decode_gemv<FormatMlxQ2, MLXParams, 4>) decode_gemv<FormatMlxQ2, MLXParams, 4>;
template [[host_name("decode_gemv_mlx_q3")]] kernel decltype(decode_gemv<FormatMlxQ3, MLXParams, 4>) decode_gemv<FormatMlxQ3, MLXParams, 4>;
template [[host_name("decode_gemv_mlx_q4")]] kernel decltype(decode_gemv<FormatMlxQ4, MLXParams, 4>) decode_gemv<FormatMlxQ4, MLXParams, 4>;
template [[host_name("decode_gemv_mlx_q5")]] kernel decltype(decode_gemv<FormatMlxQ5, MLXParams, 4>) decode_gemv<FormatMlxQ5, MLXParams, 4>;
template [[host_name("decode_gemv_mlx_q6")]] kernel decltype(decode_gemv<FormatMlxQ6, MLXParams, 4>) decode_gemv<FormatMlxQ6, MLXParams, 4>;
template [[host_name("decode_gemv_mlx_q8")]] kernel decltype(decode_gemv<FormatMlxQ8, MLXParams, 4>) decode_gemv<FormatMlxQ8, MLXParams, 4>;
// end of formats
