// whisper_gemv_fused_f16: y[m][n] = act(alpha * sum_k weight[n][k] * x[m][k] + bias[n]) + beta * y[m][n]
//
// A linear layer of Whisper's decoder in one dispatch: weights in half, a bias, the exact GELU where
// FC_GELU is set, and the residual connection by beta = 1. beta = 0 does not look at y.
//
// Launch:  grid (ceil(N / 16), M), 4 SIMD groups of 4 rows each.
// Memory:  every weight is read once for each m, x once a SIMD group (from cache); sums in registers;
//          no threadgroup memory.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/conv_constants.h"
#include "include/dot_rows.h"

using namespace metal;

constant constexpr uint FUSED_ROWS = 4;  // outputs of a SIMD group

kernel void whisper_gemv_fused_f16(
    device const float *x        [[buffer(0)]],  // (M, K), rows lda apart
    device const half *weight    [[buffer(1)]],  // (N, K), rows ldb apart
    device const float *bias     [[buffer(2)]],  // (N)
    device float *y              [[buffer(3)]],  // (M, N), rows ldc apart
    constant GEMMParams &params  [[buffer(4)]],
    uint2 group                  [[threadgroup_position_in_grid]],
    uint simd_group              [[simdgroup_index_in_threadgroup]],
    uint lane                    [[thread_index_in_simdgroup]],
    uint n_simd_groups           [[simdgroups_per_threadgroup]]
) {
    const uint first = (group.x * n_simd_groups + simd_group) * FUSED_ROWS;
    FormatF16::Row rows[FUSED_ROWS];
    take_rows<FormatF16, FUSED_ROWS>(
        (device const uchar *)weight, weight_layout(params), first, rows);

    float sums[FUSED_ROWS] = { 0.0f };
    const DeviceX x_row = { x + ulong(group.y) * params.lda };
    dot_rows<FormatF16, FUSED_ROWS>(rows, x_row, uint2(0, params.K), lane, sums);

    device float *y_row = y + ulong(group.y) * params.ldc;
    for (uint r = 0; r < FUSED_ROWS; ++r) {
        const float product = simd_sum(sums[r]);
        const uint n = first + r;
        if (lane == r && n < params.N) {
            const float sum = params.alpha * product + bias[n];
            float result = wants_gelu() ? act_gelu_erf(sum) : sum;
            if (params.beta != 0.0f) {
                result += params.beta * y_row[n];
            }
            y_row[n] = result;
        }
    }
}
