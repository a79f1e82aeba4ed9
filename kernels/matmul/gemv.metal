// gemv_<format>: the product of decoding, 4 rows a SIMD group. See include/gemv.h.

#include "include/gemv.h"

typedef decltype(gemv<FormatF32, GEMMParams, 4>) gemv_t;
template [[host_name("gemv_f32")]] kernel gemv_t gemv<FormatF32, GEMMParams, 4>;
template [[host_name("gemv_f16")]] kernel gemv_t gemv<FormatF16, GEMMParams, 4>;
template [[host_name("gemv_bf16")]] kernel gemv_t gemv<FormatBF16, GEMMParams, 4>;
template [[host_name("gemv_q4_0")]] kernel gemv_t gemv<FormatQ4_0, GEMMParams, 4>;
template [[host_name("gemv_q4_1")]] kernel gemv_t gemv<FormatQ4_1, GEMMParams, 4>;
template [[host_name("gemv_q5_0")]] kernel gemv_t gemv<FormatQ5_0, GEMMParams, 4>;
template [[host_name("gemv_q5_1")]] kernel gemv_t gemv<FormatQ5_1, GEMMParams, 4>;
template [[host_name("gemv_q8_0")]] kernel gemv_t gemv<FormatQ8_0, GEMMParams, 4>;
template [[host_name("gemv_q2_k")]] kernel gemv_t gemv<FormatQ2K, GEMMParams, 4>;
template [[host_name("gemv_q3_k")]] kernel gemv_t gemv<FormatQ3K, GEMMParams, 4>;
template [[host_name("gemv_q4_k")]] kernel gemv_t gemv<FormatQ4K, GEMMParams, 4>;
template [[host_name("gemv_q5_k")]] kernel gemv_t gemv<FormatQ5K, GEMMParams, 4>;
template [[host_name("gemv_q6_k")]] kernel gemv_t gemv<FormatQ6K, GEMMParams, 4>;

typedef decltype(gemv<FormatMlxQ2, MLXParams, 4>) gemv_mlx_t;
template [[host_name("gemv_mlx_q2")]] kernel gemv_mlx_t gemv<FormatMlxQ2, MLXParams, 4>;
template [[host_name("gemv_mlx_q3")]] kernel gemv_mlx_t gemv<FormatMlxQ3, MLXParams, 4>;
template [[host_name("gemv_mlx_q4")]] kernel gemv_mlx_t gemv<FormatMlxQ4, MLXParams, 4>;
template [[host_name("gemv_mlx_q5")]] kernel gemv_mlx_t gemv<FormatMlxQ5, MLXParams, 4>;
template [[host_name("gemv_mlx_q6")]] kernel gemv_mlx_t gemv<FormatMlxQ6, MLXParams, 4>;
template [[host_name("gemv_mlx_q8")]] kernel gemv_mlx_t gemv<FormatMlxQ8, MLXParams, 4>;
