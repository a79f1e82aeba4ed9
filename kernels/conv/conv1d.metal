// conv1d_f16: y[c][t] = bias[c] + sum over (i, k) of weight[c][i][k] * x[i][t * stride + k - padding]
//
// x is (in_channels, in_length), zero outside; weight is (out_channels, in_channels, kernel_size)
// in half. FC_GELU applies the exact GELU to the result, FC_TIME_MAJOR writes it as y[t][c], as the
// transformer behind Whisper's second convolution wants it.
//
// Launch:  one threadgroup of 128 threads for 128 steps and 8 channels; a thread has one step.
// Memory:  a value of x is read once for 8 channels, neighbouring threads reading neighbouring
//          steps. The weights of 64 taps at a time stand in threadgroup memory as float, 2 KB, and
//          are read as two float4, the same for all threads. 8 accumulators a thread.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/conv_constants.h"

using namespace metal;

constant constexpr uint CONV_STEPS = 128;
constant constexpr uint CONV_CHANNELS = 8;
constant constexpr uint CONV_TAPS = 64;  // (in_channel, k) pairs that are staged at once

static_assert(CONV_TAPS * CONV_CHANNELS * sizeof(float) <= 32768, "threadgroup memory");

// Stages the weights of taps [first, first + CONV_TAPS) for 8 channels, zero where there are none.
inline void stage_weights(
    device const half *weight, constant Conv1DParams &params, uint first_channel, uint first_tap,
    uint thread_index, threadgroup float *taps
) {
    const uint n_taps = params.in_channels * params.kernel_size;
    for (uint i = thread_index; i < CONV_TAPS * CONV_CHANNELS; i += CONV_STEPS) {
        const uint channel = first_channel + i / CONV_TAPS;
        const uint tap = first_tap + i % CONV_TAPS;
        const bool exists = channel < params.out_channels && tap < n_taps;
        const uint at = (i % CONV_TAPS) * CONV_CHANNELS + i / CONV_TAPS;
        taps[at] = exists ? float(weight[channel * n_taps + tap]) : 0.0f;
    }
}

kernel void conv1d_f16(
    device const float *x          [[buffer(0)]],
    device const half *weight      [[buffer(1)]],
    device const float *bias       [[buffer(2)]],
    device float *y                [[buffer(3)]],
    constant Conv1DParams &params  [[buffer(4)]],
    uint2 tile                     [[threadgroup_position_in_grid]],
    uint thread_index              [[thread_index_in_threadgroup]]
) {
    threadgroup float4 taps[CONV_TAPS * CONV_CHANNELS / 4];

    const uint step = tile.x * CONV_STEPS + thread_index;
    const uint first_channel = tile.y * CONV_CHANNELS;
    const uint n_taps = params.in_channels * params.kernel_size;

    float4 low = 0.0f;
    float4 high = 0.0f;
    uint in_channel = 0;
    uint k = 0;
    for (uint first_tap = 0; first_tap < n_taps; first_tap += CONV_TAPS) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        stage_weights(
            weight, params, first_channel, first_tap, thread_index, (threadgroup float *)taps);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = 0; j < min(CONV_TAPS, n_taps - first_tap); ++j) {
            // Before the beginning wraps around to a large number, which is outside as well.
            const uint at = step * params.stride + k - params.padding;
            const float value = at < params.in_length ? x[in_channel * params.in_length + at] : 0.0f;
            low += value * taps[2 * j];
            high += value * taps[2 * j + 1];
            k += 1;
            if (k == params.kernel_size) {
                k = 0;
                in_channel += 1;
            }
        }
    }

    if (step < params.out_length) {
        for (uint c = 0; c < min(CONV_CHANNELS, params.out_channels - first_channel); ++c) {
            const uint channel = first_channel + c;
            const float sum = bias[channel] + (c < 4 ? low[c] : high[c - 4]);
            const uint at = wants_time_major() ? step * params.out_channels + channel
                                               : channel * params.out_length + step;
            y[at] = wants_gelu() ? act_gelu_erf(sum) : sum;
        }
    }
}
