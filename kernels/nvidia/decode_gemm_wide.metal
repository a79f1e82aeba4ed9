// decode_gemm_wide_<format>: products of 17 to 32 rows, and of fewer with formats of super-blocks, four tiles of x. See
// include/shared_gemm.h.

#include "include/shared_gemm.h"

// for each format: decode_gemm_wide_<format> is shared_gemm<Format, 4>
template [[host_name("decode_gemm_wide_f16")]] kernel decltype(shared_gemm<FormatF16, 4>) shared_gemm<FormatF16, 4>;
template [[host_name("decode_gemm_wide_q4_0")]] kernel decltype(shared_gemm<FormatQ4_0, 4>) shared_gemm<FormatQ4_0, 4>;
template [[host_name("decode_gemm_wide_q8_0")]] kernel decltype(shared_gemm<FormatQ8_0, 4>) shared_gemm<FormatQ8_0, 4>;
template [[host_name("decode_gemm_wide_q4_k")]] kernel decltype(shared_gemm<FormatQ4K, 4>) shared_gemm<FormatQ4K, 4>;
template [[host_name("decode_gemm_wide_q5_k")]] kernel decltype(shared_gemm<FormatQ5K, 4>) shared_gemm<FormatQ5K, 4>;
template [[host_name("decode_gemm_wide_q6_k")]] kernel decltype(shared_gemm<FormatQ6K, 4>) shared_gemm<FormatQ6K, 4>;
template [[host_name("decode_gemm_wide_bf16")]] kernel decltype(shared_gemm<FormatBF16, 4>) shared_gemm<FormatBF16, 4>;
// end of formats
