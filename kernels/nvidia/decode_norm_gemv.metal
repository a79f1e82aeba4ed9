// decode_norm_gemv_<format>: a norm and the products that read it, four weights at a time. See include/decode_gemv.h.

#include "include/decode_gemv.h"

// for each format: decode_norm_gemv_<format> is decode_norm_gemv<Format, 4>
template [[host_name("decode_norm_gemv_f32")]] kernel decltype(decode_norm_gemv<FormatF32, 4>) decode_norm_gemv<FormatF32, 4>;
template [[host_name("decode_norm_gemv_f16")]] kernel decltype(decode_norm_gemv<FormatF16, 4>) decode_norm_gemv<FormatF16, 4>;
template [[host_name("decode_norm_gemv_q4_0")]] kernel decltype(decode_norm_gemv<FormatQ4_0, 4>) decode_norm_gemv<FormatQ4_0, 4>;
template [[host_name("decode_norm_gemv_q4_1")]] kernel decltype(decode_norm_gemv<FormatQ4_1, 4>) decode_norm_gemv<FormatQ4_1, 4>;
template [[host_name("decode_norm_gemv_q5_0")]] kernel decltype(decode_norm_gemv<FormatQ5_0, 4>) decode_norm_gemv<FormatQ5_0, 4>;
template [[host_name("decode_norm_gemv_q5_1")]] kernel decltype(decode_norm_gemv<FormatQ5_1, 4>) decode_norm_gemv<FormatQ5_1, 4>;
template [[host_name("decode_norm_gemv_q8_0")]] kernel decltype(decode_norm_gemv<FormatQ8_0, 4>) decode_norm_gemv<FormatQ8_0, 4>;
template [[host_name("decode_norm_gemv_q2_k")]] kernel decltype(decode_norm_gemv<FormatQ2K, 4>) decode_norm_gemv<FormatQ2K, 4>;
template [[host_name("decode_norm_gemv_q3_k")]] kernel decltype(decode_norm_gemv<FormatQ3K, 4>) decode_norm_gemv<FormatQ3K, 4>;
template [[host_name("decode_norm_gemv_q4_k")]] kernel decltype(decode_norm_gemv<FormatQ4K, 4>) decode_norm_gemv<FormatQ4K, 4>;
template [[host_name("decode_norm_gemv_q5_k")]] kernel decltype(decode_norm_gemv<FormatQ5K, 4>) decode_norm_gemv<FormatQ5K, 4>;
template [[host_name("decode_norm_gemv_q6_k")]] kernel decltype(decode_norm_gemv<FormatQ6K, 4>) decode_norm_gemv<FormatQ6K, 4>;
template [[host_name("decode_norm_gemv_iq2_xxs")]] kernel decltype(decode_norm_gemv<FormatIQ2XXS, 4>) decode_norm_gemv<FormatIQ2XXS, 4>;
template [[host_name("decode_norm_gemv_iq2_xs")]] kernel decltype(decode_norm_gemv<FormatIQ2XS, 4>) decode_norm_gemv<FormatIQ2XS, 4>;
template [[host_name("decode_norm_gemv_iq3_xxs")]] kernel decltype(decode_norm_gemv<FormatIQ3XXS, 4>) decode_norm_gemv<FormatIQ3XXS, 4>;
template [[host_name("decode_norm_gemv_iq1_s")]] kernel decltype(decode_norm_gemv<FormatIQ1S, 4>) decode_norm_gemv<FormatIQ1S, 4>;
template [[host_name("decode_norm_gemv_iq4_nl")]] kernel decltype(decode_norm_gemv<FormatIQ4NL, 4>) decode_norm_gemv<FormatIQ4NL, 4>;
template [[host_name("decode_norm_gemv_iq3_s")]] kernel decltype(decode_norm_gemv<FormatIQ3S, 4>) decode_norm_gemv<FormatIQ3S, 4>;
template [[host_name("decode_norm_gemv_iq2_s")]] kernel decltype(decode_norm_gemv<FormatIQ2S, 4>) decode_norm_gemv<FormatIQ2S, 4>;
template [[host_name("decode_norm_gemv_iq4_xs")]] kernel decltype(decode_norm_gemv<FormatIQ4XS, 4>) decode_norm_gemv<FormatIQ4XS, 4>;
template [[host_name("decode_norm_gemv_iq1_m")]] kernel decltype(decode_norm_gemv<FormatIQ1M, 4>) decode_norm_gemv<FormatIQ1M, 4>;
template [[host_name("decode_norm_gemv_bf16")]] kernel decltype(decode_norm_gemv<FormatBF16, 4>) decode_norm_gemv<FormatBF16, 4>;
template [[host_name("decode_norm_gemv_mxfp4")]] kernel decltype(decode_norm_gemv<FormatMXFP4, 4>) decode_norm_gemv<FormatMXFP4, 4>;
template [[host_name("decode_norm_gemv_mlx_q2")]] kernel decltype(decode_norm_gemv<FormatMlxQ2, 4>) decode_norm_gemv<FormatMlxQ2, 4>;
template [[host_name("decode_norm_gemv_mlx_q3")]] kernel decltype(decode_norm_gemv<FormatMlxQ3, 4>) decode_norm_gemv<FormatMlxQ3, 4>;
template [[host_name("decode_norm_gemv_mlx_q4")]] kernel decltype(decode_norm_gemv<FormatMlxQ4, 4>) decode_norm_gemv<FormatMlxQ4, 4>;
template [[host_name("decode_norm_gemv_mlx_q5")]] kernel decltype(decode_norm_gemv<FormatMlxQ5, 4>) decode_norm_gemv<FormatMlxQ5, 4>;
template [[host_name("decode_norm_gemv_mlx_q6")]] kernel decltype(decode_norm_gemv<FormatMlxQ6, 4>) decode_norm_gemv<FormatMlxQ6, 4>;
template [[host_name("decode_norm_gemv_mlx_q8")]] kernel decltype(decode_norm_gemv<FormatMlxQ8, 4>) decode_norm_gemv<FormatMlxQ8, 4>;
// end of formats
