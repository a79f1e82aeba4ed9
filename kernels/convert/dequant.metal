// dequant_<format>_f16: y[i] = weight[i] as half. For f32 and bf16 this is the plain conversion.
//
// Launch:  one thread a run of 8 values, grid (ceil(runs / 128), rows), 128 threads; all but MLX weights
//          are one long row.
// Memory:  every byte is read and written once.

#include "include/weight_copy.h"

template <typename F, typename P>
kernel void dequant(
    device const uchar *weight   [[buffer(0)]],
    device half *y               [[buffer(1)]],
    constant P &params           [[buffer(2)]],
    uint2 at                     [[thread_position_in_grid]]
) {
    const WeightLayout layout = weight_layout(params);
    if (at.x < (layout.row_len + RUN - 1) / RUN) {
        copy_run<F>(F::row(weight, layout, at.y), at.x, layout.row_len, y + ulong(at.y) * layout.row_len);
    }
}

// for each format: dequant_<format>_f16 is dequant<Format, ElementwiseParams>
template [[host_name("dequant_f32_f16")]] kernel decltype(dequant<FormatF32, ElementwiseParams>) dequant<FormatF32, ElementwiseParams>;
template [[host_name("dequant_f16_f16")]] kernel decltype(dequant<FormatF16, ElementwiseParams>) dequant<FormatF16, ElementwiseParams>;
template [[host_name("dequant_q4_0_f16")]] kernel decltype(dequant<FormatQ4_0, ElementwiseParams>) dequant<FormatQ4_0, ElementwiseParams>;
template [[host_name("dequant_q4_1_f16")]] kernel decltype(dequant<FormatQ4_1, ElementwiseParams>) dequant<FormatQ4_1, ElementwiseParams>;
template [[host_name("dequant_q5_0_f16")]] kernel decltype(dequant<FormatQ5_0, ElementwiseParams>) dequant<FormatQ5_0, ElementwiseParams>;
template [[host_name("dequant_q5_1_f16")]] kernel decltype(dequant<FormatQ5_1, ElementwiseParams>) dequant<FormatQ5_1, ElementwiseParams>;
template [[host_name("dequant_q8_0_f16")]] kernel decltype(dequant<FormatQ8_0, ElementwiseParams>) dequant<FormatQ8_0, ElementwiseParams>;
template [[host_name("dequant_q2_k_f16")]] kernel decltype(dequant<FormatQ2K, ElementwiseParams>) dequant<FormatQ2K, ElementwiseParams>;
template [[host_name("dequant_q3_k_f16")]] kernel decltype(dequant<FormatQ3K, ElementwiseParams>) dequant<FormatQ3K, ElementwiseParams>;
template [[host_name("dequant_q4_k_f16")]] kernel decltype(dequant<FormatQ4K, ElementwiseParams>) dequant<FormatQ4K, ElementwiseParams>;
template [[host_name("dequant_q5_k_f16")]] kernel decltype(dequant<FormatQ5K, ElementwiseParams>) dequant<FormatQ5K, ElementwiseParams>;
template [[host_name("dequant_q6_k_f16")]] kernel decltype(dequant<FormatQ6K, ElementwiseParams>) dequant<FormatQ6K, ElementwiseParams>;
template [[host_name("dequant_bf16_f16")]] kernel decltype(dequant<FormatBF16, ElementwiseParams>) dequant<FormatBF16, ElementwiseParams>;
template [[host_name("dequant_mlx_q2_f16")]] kernel decltype(dequant<FormatMlxQ2, MLXParams>) dequant<FormatMlxQ2, MLXParams>;
template [[host_name("dequant_mlx_q3_f16")]] kernel decltype(dequant<FormatMlxQ3, MLXParams>) dequant<FormatMlxQ3, MLXParams>;
template [[host_name("dequant_mlx_q4_f16")]] kernel decltype(dequant<FormatMlxQ4, MLXParams>) dequant<FormatMlxQ4, MLXParams>;
template [[host_name("dequant_mlx_q5_f16")]] kernel decltype(dequant<FormatMlxQ5, MLXParams>) dequant<FormatMlxQ5, MLXParams>;
template [[host_name("dequant_mlx_q6_f16")]] kernel decltype(dequant<FormatMlxQ6, MLXParams>) dequant<FormatMlxQ6, MLXParams>;
template [[host_name("dequant_mlx_q8_f16")]] kernel decltype(dequant<FormatMlxQ8, MLXParams>) dequant<FormatMlxQ8, MLXParams>;
// end of formats
