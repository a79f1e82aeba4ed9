// async_gemm_64_<format>: products of 33 to 64 rows on compute capability 9.0. See include/async_gemm.h.

#include "include/async_gemm.h"

// for each format: async_gemm_64_<format> is async_gemm<Format, 8>
template [[host_name("async_gemm_64_f16")]] kernel decltype(async_gemm<FormatF16, 8>) async_gemm<FormatF16, 8>;
template [[host_name("async_gemm_64_q4_0")]] kernel decltype(async_gemm<FormatQ4_0, 8>) async_gemm<FormatQ4_0, 8>;
template [[host_name("async_gemm_64_q8_0")]] kernel decltype(async_gemm<FormatQ8_0, 8>) async_gemm<FormatQ8_0, 8>;
template [[host_name("async_gemm_64_q4_k")]] kernel decltype(async_gemm<FormatQ4K, 8>) async_gemm<FormatQ4K, 8>;
template [[host_name("async_gemm_64_q5_k")]] kernel decltype(async_gemm<FormatQ5K, 8>) async_gemm<FormatQ5K, 8>;
template [[host_name("async_gemm_64_q6_k")]] kernel decltype(async_gemm<FormatQ6K, 8>) async_gemm<FormatQ6K, 8>;
template [[host_name("async_gemm_64_bf16")]] kernel decltype(async_gemm<FormatBF16, 8>) async_gemm<FormatBF16, 8>;
// end of formats
