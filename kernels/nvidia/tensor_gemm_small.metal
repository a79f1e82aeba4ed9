// tensor_gemm_small_<format>: batches of up to 16 rows, tiles of 16 x 16, eight teams split K. See include/tensor_gemm.h.

#include "include/tensor_gemm.h"

// for each format: tensor_gemm_small_<format> is tensor_gemm<Format, GEMMParams, 16, 16, 1, 1, 8>
template [[host_name("tensor_gemm_small_mlx_q4")]] kernel decltype(tensor_gemm<FormatMlxQ4, MLXParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatMlxQ4, MLXParams, 16, 16, 1, 1, 8>;
template [[host_name("tensor_gemm_small_mlx_q8")]] kernel decltype(tensor_gemm<FormatMlxQ8, MLXParams, 16, 16, 1, 1, 8>) tensor_gemm<FormatMlxQ8, MLXParams, 16, 16, 1, 1, 8>;
// end of formats
