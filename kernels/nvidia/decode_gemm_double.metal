// decode_gemm_double_<format>: products of 17 to 64 rows with small weights, four tiles of x at a time. See include/decode_gemm.h.

#include "include/decode_gemm.h"

// for each format: decode_gemm_double_<format> is decode_gemm<Format, 4>
template [[host_name("decode_gemm_double_f16")]] kernel decltype(decode_gemm<FormatF16, 4>) decode_gemm<FormatF16, 4>;
template [[host_name("decode_gemm_double_q4_0")]] kernel decltype(decode_gemm<FormatQ4_0, 4>) decode_gemm<FormatQ4_0, 4>;
template [[host_name("decode_gemm_double_q8_0")]] kernel decltype(decode_gemm<FormatQ8_0, 4>) decode_gemm<FormatQ8_0, 4>;
template [[host_name("decode_gemm_double_bf16")]] kernel decltype(decode_gemm<FormatBF16, 4>) decode_gemm<FormatBF16, 4>;
// end of formats
