// tensor_gemm_small_<format>: batches of up to 16 rows, tiles of 16 x 16, eight teams split K. See include/tensor_gemm.h.

#include "include/tensor_gemm.h"

// for each format: tensor_gemm_small_<format> is tensor_gemm<Format, GEMMParams, 16, 16, 1, 1, 8>
template [[host_name("tensor_gemm_small_f16")]] kernel decltype(tensor_gemm<FormatF16, GEMMParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatF16, GEMMParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_q4_0")]] kernel decltype(tensor_gemm<FormatQ4_0, GEMMParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatQ4_0, GEMMParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_q8_0")]] kernel decltype(tensor_gemm<FormatQ8_0, GEMMParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatQ8_0, GEMMParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_q4_k")]] kernel decltype(tensor_gemm<FormatQ4K, GEMMParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatQ4K, GEMMParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_q5_k")]] kernel decltype(tensor_gemm<FormatQ5K, GEMMParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatQ5K, GEMMParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_q6_k")]] kernel decltype(tensor_gemm<FormatQ6K, GEMMParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatQ6K, GEMMParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_bf16")]] kernel decltype(tensor_gemm<FormatBF16, GEMMParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatBF16, GEMMParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_mlx_q4")]] kernel decltype(tensor_gemm<FormatMlxQ4, MLXParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatMlxQ4, MLXParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_mlx_q8")]] kernel decltype(tensor_gemm<FormatMlxQ8, MLXParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatMlxQ8, MLXParams, 16, 16, 1, 1, 8>;
// end of formats
