// async_gemm_128_<format>: products of prompts on compute capability 9.0. See include/async_gemm.h.

#include "include/async_gemm.h"

// for each format: async_gemm_128_<format> is async_gemm<Format, 16>
template [[host_name("async_gemm_128_f16")]] kernel decltype(async_gemm<FormatF16, 16>) async_gemm<FormatF16, 16>;
template [[host_name("async_gemm_128_q4_0")]] kernel decltype(async_gemm<FormatQ4_0, 16>) async_gemm<FormatQ4_0, 16>;
template [[host_name("async_gemm_128_q8_0")]] kernel decltype(async_gemm<FormatQ8_0, 16>) async_gemm<FormatQ8_0, 16>;
template [[host_name("async_gemm_128_q4_k")]] kernel decltype(async_gemm<FormatQ4K, 16>) async_gemm<FormatQ4K, 16>;
template [[host_name("async_gemm_128_q5_k")]] kernel decltype(async_gemm<FormatQ5K, 16>) async_gemm<FormatQ5K, 16>;
template [[host_name("async_gemm_128_q6_k")]] kernel decltype(async_gemm<FormatQ6K, 16>) async_gemm<FormatQ6K, 16>;
template [[host_name("async_gemm_128_bf16")]] kernel decltype(async_gemm<FormatBF16, 16>) async_gemm<FormatBF16, 16>;
// end of formats
