// decode_gemm_widest_<format>: products of 33 to 64 rows, eight tiles of x. See include/shared_gemm.h.

#include "include/shared_gemm.h"

// for each format: decode_gemm_widest_<format> is shared_gemm<Format, 8>
template [[host_name("decode_gemm_widest_f16")]] kernel decltype(shared_gemm<FormatF16, 8>) shared_gemm<FormatF16, 8>;
template [[host_name("decode_gemm_widest_q4_0")]] kernel decltype(shared_gemm<FormatQ4_0, 8>) shared_gemm<FormatQ4_0, 8>;
template [[host_name("decode_gemm_widest_q8_0")]] kernel decltype(shared_gemm<FormatQ8_0, 8>) shared_gemm<FormatQ8_0, 8>;
template [[host_name("decode_gemm_widest_q4_k")]] kernel decltype(shared_gemm<FormatQ4K, 8>) shared_gemm<FormatQ4K, 8>;
template [[host_name("decode_gemm_widest_q5_k")]] kernel decltype(shared_gemm<FormatQ5K, 8>) shared_gemm<FormatQ5K, 8>;
template [[host_name("decode_gemm_widest_q6_k")]] kernel decltype(shared_gemm<FormatQ6K, 8>) shared_gemm<FormatQ6K, 8>;
template [[host_name("decode_gemm_widest_bf16")]] kernel decltype(shared_gemm<FormatBF16, 8>) shared_gemm<FormatBF16, 8>;
// end of formats
