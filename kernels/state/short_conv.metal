// short_conv_f32: a causal convolution of each channel over the last tokens of its sequence
//
//     s[r] = sum_t weight[c][t] * u[r - (taps - 1) + t][c] + bias[c]
//     to = silu(s), u = x      or      to = c * s, u = b * x      or      to = s, u = x
//
// The state of a sequence is u of its last taps - 1 tokens. A row that goes on from the taps - 1 rows before it
// finds them in x, by a thread of its own. The other rows, and the states, are the business of the threads of the
// first row of the sequence.
//
// Launch:  x along the channels, a thread each; y a row each. Threadgroups of 256.
// Memory:  x is read taps times, all but once from the cache; a state is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/states.h"

using namespace metal;

constant constexpr uint MAX_TAPS = 4;

// The values of ShortConvParams.form.
constant constexpr uint FORM_GATED = 1;
constant constexpr uint FORM_PLAIN = 2;

// The last inputs of a channel, the newest last; those before the first tap are not used.
inline float4 push(float4 window, float value) {
    return float4(window.yzw, value);
}

// One channel of all rows.
struct Channel {
    device const float *x;
    ulong stride;
    uint width;
    uint taps;
    uint form;
    // The last ones of four.
    float4 weight;
    float bias;

    // What is convolved at a row.
    float input(uint row) const {
        device const float *own = x + row * stride;
        return form == FORM_GATED ? own[0] * own[2 * ulong(width)] : own[0];
    }

    // The result of a row, from its window.
    float result(uint row, float4 window) const {
        float sum = 0.0f;
        for (uint t = 0; t < MAX_TAPS; t++) {
            sum = t + taps >= MAX_TAPS ? sum + weight[t] * window[t] : sum;
        }
        sum += bias;
        if (form == FORM_GATED) {
            return x[row * stride + width] * sum;
        }
        return form == FORM_PLAIN ? sum : act_silu(sum);
    }

    // The window of a row that goes on from those right before it.
    float4 before(uint row) const {
        float4 window = float4(0.0f);
        for (uint t = 0; t < taps; t++) {
            window = push(window, input(row + 1 + t - taps));
        }
        return window;
    }
};

// Whether a row goes on from the one right before it.
inline bool is_next(device const Row *rows, uint at, uint n_blocks) {
    if (at == 0 || !is_active(rows[at - 1]) || rows[at - 1].sequence != rows[at].sequence) {
        return false;
    }
    const uint from = state_from(rows[at], n_blocks);
    return from != NO_STATE && from == state_to(rows[at - 1], n_blocks);
}

// Whether a row goes on from as many rows right before it as its result depends on.
inline bool is_inside(device const Row *rows, uint at, constant ShortConvParams &params) {
    for (uint t = 1; t < params.taps; t++) {
        if (at + 1 < t || !is_next(rows, at + 1 - t, params.n_blocks)) {
            return false;
        }
    }
    return true;
}

kernel void short_conv_f32(
    device const float *x               [[buffer(0)]],
    device const float *weight          [[buffer(1)]],
    device const float *bias            [[buffer(2)]],
    device const Row *rows              [[buffer(3)]],
    device float *states                [[buffer(4)]],
    device float *to                    [[buffer(5)]],
    constant ShortConvParams &params    [[buffer(6)]],
    uint2 index                         [[thread_position_in_grid]]
) {
    const uint channel = index.x;
    uint at = index.y;
    if (at >= params.n_rows || channel >= params.width || !is_active(rows[at])) {
        return;
    }
    const bool is_own = is_inside(rows, at, params);
    if (!is_own && row_before(rows, at) != NO_ROW) {
        return;
    }
    const uint width = params.width;
    const uint taps = params.taps;
    Channel own = {x + channel, params.stride, width, taps, params.form, float4(0.0f), 0.0f};
    for (uint t = 0; t < taps; t++) {
        own.weight = push(own.weight, weight[ulong(channel) * taps + t]);
    }
    own.bias = params.has_bias != 0 ? bias[channel] : 0.0f;
    if (is_own) {
        to[ulong(at) * width + channel] = own.result(at, own.before(at));
        return;
    }

    float4 window = float4(0.0f);
    // Rows right before this one that each went on from the one before.
    uint n_before = 0;
    while (at != NO_ROW) {
        const uint next = row_behind(rows, at, params.n_rows);
        // A state that the next row overwrites is in the window then, or in x.
        const uint kept_in = stored_to(rows, at, next == at + 1 ? next : NO_ROW, params.n_blocks);
        n_before = is_next(rows, at, params.n_blocks) ? n_before + 1 : 0;
        if (n_before + 1 < taps) {
            if (n_before == 0) {
                const uint from = state_from(rows[at], params.n_blocks);
                device const float *state = states + ulong(from) * (taps - 1) * width + channel;
                for (uint t = 0; t + 1 < taps; t++) {
                    window = push(window, from == NO_STATE ? 0.0f : state[ulong(t) * width]);
                }
            }
            window = push(window, own.input(at));
            to[ulong(at) * width + channel] = own.result(at, window);
        } else if (kept_in != NO_STATE) {
            window = own.before(at);
        }
        if (kept_in != NO_STATE) {
            device float *state = states + ulong(kept_in) * (taps - 1) * width + channel;
            for (uint t = 1; t < MAX_TAPS; t++) {
                if (t + taps > MAX_TAPS) {
                    state[ulong(t + taps - MAX_TAPS - 1) * width] = window[t];
                }
            }
        }
        at = next;
    }
}
