// async_gemm_32_<format>: products of 17 to 32 rows on compute capability 9.0. See include/async_gemm.h.

#include "include/async_gemm.h"

// for each format: async_gemm_32_<format> is async_gemm<Format, 4>
template [[host_name("async_gemm_32_f16")]] kernel decltype(async_gemm<FormatF16, 4>) async_gemm<FormatF16, 4>;
template [[host_name("async_gemm_32_q4_0")]] kernel decltype(async_gemm<FormatQ4_0, 4>) async_gemm<FormatQ4_0, 4>;
template [[host_name("async_gemm_32_q8_0")]] kernel decltype(async_gemm<FormatQ8_0, 4>) async_gemm<FormatQ8_0, 4>;
template [[host_name("async_gemm_32_q4_k")]] kernel decltype(async_gemm<FormatQ4K, 4>) async_gemm<FormatQ4K, 4>;
template [[host_name("async_gemm_32_q5_k")]] kernel decltype(async_gemm<FormatQ5K, 4>) async_gemm<FormatQ5K, 4>;
template [[host_name("async_gemm_32_q6_k")]] kernel decltype(async_gemm<FormatQ6K, 4>) async_gemm<FormatQ6K, 4>;
template [[host_name("async_gemm_32_bf16")]] kernel decltype(async_gemm<FormatBF16, 4>) async_gemm<FormatBF16, 4>;
// end of formats
