// gemv_wide_<format>: 8 rows a SIMD group, for outputs as wide as a vocabulary, where there are more
// than enough rows to fill the GPU and each load of x serves twice as many. See include/gemv.h.

#include "include/gemv.h"

typedef decltype(gemv<FormatF32, GEMMParams, 8>) gemv_wide_t;
template [[host_name("gemv_wide_f32")]] kernel gemv_wide_t gemv<FormatF32, GEMMParams, 8>;
template [[host_name("gemv_wide_f16")]] kernel gemv_wide_t gemv<FormatF16, GEMMParams, 8>;
template [[host_name("gemv_wide_bf16")]] kernel gemv_wide_t gemv<FormatBF16, GEMMParams, 8>;
template [[host_name("gemv_wide_q4_0")]] kernel gemv_wide_t gemv<FormatQ4_0, GEMMParams, 8>;
template [[host_name("gemv_wide_q4_1")]] kernel gemv_wide_t gemv<FormatQ4_1, GEMMParams, 8>;
template [[host_name("gemv_wide_q5_0")]] kernel gemv_wide_t gemv<FormatQ5_0, GEMMParams, 8>;
template [[host_name("gemv_wide_q5_1")]] kernel gemv_wide_t gemv<FormatQ5_1, GEMMParams, 8>;
template [[host_name("gemv_wide_q8_0")]] kernel gemv_wide_t gemv<FormatQ8_0, GEMMParams, 8>;
template [[host_name("gemv_wide_q2_k")]] kernel gemv_wide_t gemv<FormatQ2K, GEMMParams, 8>;
template [[host_name("gemv_wide_q3_k")]] kernel gemv_wide_t gemv<FormatQ3K, GEMMParams, 8>;
template [[host_name("gemv_wide_q4_k")]] kernel gemv_wide_t gemv<FormatQ4K, GEMMParams, 8>;
template [[host_name("gemv_wide_q5_k")]] kernel gemv_wide_t gemv<FormatQ5K, GEMMParams, 8>;
template [[host_name("gemv_wide_q6_k")]] kernel gemv_wide_t gemv<FormatQ6K, GEMMParams, 8>;

typedef decltype(gemv<FormatMlxQ2, MLXParams, 8>) gemv_wide_mlx_t;
template [[host_name("gemv_wide_mlx_q2")]] kernel gemv_wide_mlx_t gemv<FormatMlxQ2, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q3")]] kernel gemv_wide_mlx_t gemv<FormatMlxQ3, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q4")]] kernel gemv_wide_mlx_t gemv<FormatMlxQ4, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q5")]] kernel gemv_wide_mlx_t gemv<FormatMlxQ5, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q6")]] kernel gemv_wide_mlx_t gemv<FormatMlxQ6, MLXParams, 8>;
template [[host_name("gemv_wide_mlx_q8")]] kernel gemv_wide_mlx_t gemv<FormatMlxQ8, MLXParams, 8>;
