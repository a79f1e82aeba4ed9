// decode_gemm_<format>: products of 2 to 16 rows, two tiles of x. See include/decode_gemm.h.

#include "include/decode_gemm.h"

// for each format: decode_gemm_<format> is decode_gemm<Format, 2>
template [[host_name("decode_gemm_f16")]] kernel decltype(decode_gemm<FormatF16, 2>) decode_gemm<FormatF16, 2>;
template [[host_name("decode_gemm_q4_0")]] kernel decltype(decode_gemm<FormatQ4_0, 2>) decode_gemm<FormatQ4_0, 2>;
template [[host_name("decode_gemm_q8_0")]] kernel decltype(decode_gemm<FormatQ8_0, 2>) decode_gemm<FormatQ8_0, 2>;
template [[host_name("decode_gemm_bf16")]] kernel decltype(decode_gemm<FormatBF16, 2>) decode_gemm<FormatBF16, 2>;
// end of formats
