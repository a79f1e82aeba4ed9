// decode_gemm_widest_<format>: products of 33 to 64 rows, eight tiles of x. See include/decode_gemm.h.

#include "include/decode_gemm.h"

// for each format: decode_gemm_widest_<format> is decode_gemm<Format, 8>
template [[host_name("decode_gemm_widest_f16")]] kernel decltype(decode_gemm<FormatF16, 8>) decode_gemm<FormatF16, 8>;
template [[host_name("decode_gemm_widest_q4_0")]] kernel decltype(decode_gemm<FormatQ4_0, 8>) decode_gemm<FormatQ4_0, 8>;
template [[host_name("decode_gemm_widest_q8_0")]] kernel decltype(decode_gemm<FormatQ8_0, 8>) decode_gemm<FormatQ8_0, 8>;
template [[host_name("decode_gemm_widest_q4_k")]] kernel decltype(decode_gemm<FormatQ4K, 8>) decode_gemm<FormatQ4K, 8>;
template [[host_name("decode_gemm_widest_q5_k")]] kernel decltype(decode_gemm<FormatQ5K, 8>) decode_gemm<FormatQ5K, 8>;
template [[host_name("decode_gemm_widest_q6_k")]] kernel decltype(decode_gemm<FormatQ6K, 8>) decode_gemm<FormatQ6K, 8>;
template [[host_name("decode_gemm_widest_bf16")]] kernel decltype(decode_gemm<FormatBF16, 8>) decode_gemm<FormatBF16, 8>;
// end of formats
