// tensor_gemm_<format>: the product of prefill on NVIDIA's tensor cores, tiles of 128 x 128. See include/tensor_gemm.h.

#include "include/tensor_gemm.h"

// for each format: tensor_gemm_<format> is tensor_gemm<Format, GEMMParams, 128, 128, 2, 4, 1>
template [[host_name("tensor_gemm_f16")]] kernel decltype(tensor_gemm<FormatF16, GEMMParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatF16, GEMMParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_q4_0")]] kernel decltype(tensor_gemm<FormatQ4_0, GEMMParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatQ4_0, GEMMParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_q8_0")]] kernel decltype(tensor_gemm<FormatQ8_0, GEMMParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatQ8_0, GEMMParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_q4_k")]] kernel decltype(tensor_gemm<FormatQ4K, GEMMParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatQ4K, GEMMParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_q5_k")]] kernel decltype(tensor_gemm<FormatQ5K, GEMMParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatQ5K, GEMMParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_q6_k")]] kernel decltype(tensor_gemm<FormatQ6K, GEMMParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatQ6K, GEMMParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_bf16")]] kernel decltype(tensor_gemm<FormatBF16, GEMMParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatBF16, GEMMParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_mlx_q4")]] kernel decltype(tensor_gemm<FormatMlxQ4, MLXParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatMlxQ4, MLXParams, 128, 128, 2, 4, 1>;
template [[host_name("tensor_gemm_mlx_q8")]] kernel decltype(tensor_gemm<FormatMlxQ8, MLXParams, 128, 128, 2, 4, 1>) tensor_gemm<FormatMlxQ8, MLXParams, 128, 128, 2, 4, 1>;
// end of formats
