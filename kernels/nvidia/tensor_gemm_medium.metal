// tensor_gemm_medium_<format>: prompts and batches too small for large tiles, 64 x 64, two teams split K. See include/tensor_gemm.h.

#include "include/tensor_gemm.h"

// for each format: tensor_gemm_medium_<format> is tensor_gemm<Format, GEMMParams, 64, 64, 2, 2, 2>
template [[host_name("tensor_gemm_medium_f16")]] kernel decltype(tensor_gemm<FormatF16, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatF16, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q4_0")]] kernel decltype(tensor_gemm<FormatQ4_0, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ4_0, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q4_1")]] kernel decltype(tensor_gemm<FormatQ4_1, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ4_1, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q5_0")]] kernel decltype(tensor_gemm<FormatQ5_0, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ5_0, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q5_1")]] kernel decltype(tensor_gemm<FormatQ5_1, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ5_1, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q8_0")]] kernel decltype(tensor_gemm<FormatQ8_0, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ8_0, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q2_k")]] kernel decltype(tensor_gemm<FormatQ2K, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ2K, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q3_k")]] kernel decltype(tensor_gemm<FormatQ3K, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ3K, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q4_k")]] kernel decltype(tensor_gemm<FormatQ4K, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ4K, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q5_k")]] kernel decltype(tensor_gemm<FormatQ5K, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ5K, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_q6_k")]] kernel decltype(tensor_gemm<FormatQ6K, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatQ6K, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq2_xxs")]] kernel decltype(tensor_gemm<FormatIQ2XXS, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ2XXS, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq2_xs")]] kernel decltype(tensor_gemm<FormatIQ2XS, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ2XS, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq3_xxs")]] kernel decltype(tensor_gemm<FormatIQ3XXS, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ3XXS, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq1_s")]] kernel decltype(tensor_gemm<FormatIQ1S, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ1S, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq4_nl")]] kernel decltype(tensor_gemm<FormatIQ4NL, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ4NL, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq3_s")]] kernel decltype(tensor_gemm<FormatIQ3S, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ3S, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq2_s")]] kernel decltype(tensor_gemm<FormatIQ2S, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ2S, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq4_xs")]] kernel decltype(tensor_gemm<FormatIQ4XS, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ4XS, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_iq1_m")]] kernel decltype(tensor_gemm<FormatIQ1M, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatIQ1M, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_bf16")]] kernel decltype(tensor_gemm<FormatBF16, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatBF16, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_mxfp4")]] kernel decltype(tensor_gemm<FormatMXFP4, GEMMParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatMXFP4, GEMMParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_mlx_q2")]] kernel decltype(tensor_gemm<FormatMlxQ2, MLXParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatMlxQ2, MLXParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_mlx_q3")]] kernel decltype(tensor_gemm<FormatMlxQ3, MLXParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatMlxQ3, MLXParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_mlx_q4")]] kernel decltype(tensor_gemm<FormatMlxQ4, MLXParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatMlxQ4, MLXParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_mlx_q5")]] kernel decltype(tensor_gemm<FormatMlxQ5, MLXParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatMlxQ5, MLXParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_mlx_q6")]] kernel decltype(tensor_gemm<FormatMlxQ6, MLXParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatMlxQ6, MLXParams, 64, 64, 2, 2, 2>;
template [[host_name("tensor_gemm_medium_mlx_q8")]] kernel decltype(tensor_gemm<FormatMlxQ8, MLXParams, 64, 64, 2, 2, 2>) tensor_gemm<FormatMlxQ8, MLXParams, 64, 64, 2, 2, 2>;
// end of formats
