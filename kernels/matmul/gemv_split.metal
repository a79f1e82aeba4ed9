// gemv_split_<format>: the product of decoding for GPUs with many SIMD groups, which split K. See include/gemv_split.h.

#include "include/gemv_split.h"

typedef decltype(gemv_split<FormatF32, GEMMParams, 4>) gemv_split_t;
template [[host_name("gemv_split_f32")]] kernel gemv_split_t gemv_split<FormatF32, GEMMParams, 4>;
template [[host_name("gemv_split_f16")]] kernel gemv_split_t gemv_split<FormatF16, GEMMParams, 4>;
template [[host_name("gemv_split_bf16")]] kernel gemv_split_t gemv_split<FormatBF16, GEMMParams, 4>;
template [[host_name("gemv_split_q4_0")]] kernel gemv_split_t gemv_split<FormatQ4_0, GEMMParams, 4>;
template [[host_name("gemv_split_q4_1")]] kernel gemv_split_t gemv_split<FormatQ4_1, GEMMParams, 4>;
template [[host_name("gemv_split_q5_0")]] kernel gemv_split_t gemv_split<FormatQ5_0, GEMMParams, 4>;
template [[host_name("gemv_split_q5_1")]] kernel gemv_split_t gemv_split<FormatQ5_1, GEMMParams, 4>;
template [[host_name("gemv_split_q8_0")]] kernel gemv_split_t gemv_split<FormatQ8_0, GEMMParams, 4>;
template [[host_name("gemv_split_q2_k")]] kernel gemv_split_t gemv_split<FormatQ2K, GEMMParams, 4>;
template [[host_name("gemv_split_q3_k")]] kernel gemv_split_t gemv_split<FormatQ3K, GEMMParams, 4>;
template [[host_name("gemv_split_q4_k")]] kernel gemv_split_t gemv_split<FormatQ4K, GEMMParams, 4>;
template [[host_name("gemv_split_q5_k")]] kernel gemv_split_t gemv_split<FormatQ5K, GEMMParams, 4>;
template [[host_name("gemv_split_q6_k")]] kernel gemv_split_t gemv_split<FormatQ6K, GEMMParams, 4>;

typedef decltype(gemv_split<FormatMlxQ2, MLXParams, 4>) gemv_split_mlx_t;
template [[host_name("gemv_split_mlx_q2")]] kernel gemv_split_mlx_t gemv_split<FormatMlxQ2, MLXParams, 4>;
template [[host_name("gemv_split_mlx_q3")]] kernel gemv_split_mlx_t gemv_split<FormatMlxQ3, MLXParams, 4>;
template [[host_name("gemv_split_mlx_q4")]] kernel gemv_split_mlx_t gemv_split<FormatMlxQ4, MLXParams, 4>;
template [[host_name("gemv_split_mlx_q5")]] kernel gemv_split_mlx_t gemv_split<FormatMlxQ5, MLXParams, 4>;
template [[host_name("gemv_split_mlx_q6")]] kernel gemv_split_mlx_t gemv_split<FormatMlxQ6, MLXParams, 4>;
template [[host_name("gemv_split_mlx_q8")]] kernel gemv_split_mlx_t gemv_split<FormatMlxQ8, MLXParams, 4>;
