// delta_rule_f32: a state of (head_dim, head_dim) for each value head, which forgets a share of itself and then
// corrects what it has for a key
//
//     q, k = q / |q|, k / |k|    |x| = sqrt(sum of x^2 + eps);    q /= sqrt(head_dim)
//     g = exp(decay * softplus(alpha + dt_bias));   a = S' k;   b = S' q
//     d = sigmoid(beta) * (v - g a);   to = g b + (k . q) d;   S = g S + k d'
//
// The columns of S are independent: four lanes share one, each with a quarter of its numbers in registers, from the
// first row of a sequence to the last. Lengths are divided out of the sums, so that q and k are used as they are.
//
// Launch:  x for 32 columns of a head, y a row each; 128 threads. Only the threadgroups of the first row of a
//          sequence do anything.
// Memory:  a state is read and written once a sequence; q and k of a row are read from the cache by all columns of
//          their heads.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/attention_constants.h"
#include "include/reduce.h"
#include "include/states.h"

using namespace metal;

// Columns of a SIMD group and of a threadgroup.
constant constexpr uint COLUMNS = 8;
constant constexpr uint GROUP_COLUMNS = 32;
// Lanes of a column.
constant constexpr uint LANES = SIMD_WIDTH / COLUMNS;
// Keys that the lanes of a column have next to each other, four each.
constant constexpr uint STEP = 4 * LANES;
constant constexpr uint MAX_STEPS = 256 / STEP;

// The sum over the lanes of a column.
inline float of_column(float value) {
    value += simd_shuffle_xor(value, COLUMNS);
    return value + simd_shuffle_xor(value, 2 * COLUMNS);
}

inline float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

kernel void delta_rule_f32(
    device const float *qkv             [[buffer(0)]],
    device const float *beta            [[buffer(1)]],
    device const float *alpha           [[buffer(2)]],
    device const float *decay           [[buffer(3)]],
    device const float *dt_bias         [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device float *states                [[buffer(6)]],
    device float *to                    [[buffer(7)]],
    constant DeltaRuleParams &params    [[buffer(8)]],
    uint2 group                         [[threadgroup_position_in_grid]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]]
) {
    uint at = group.y;
    if (!is_active(rows[at]) || row_before(rows, at) != NO_ROW) {
        return;
    }
    const uint dim = HAS_HEAD_DIM ? FC_HEAD_DIM : params.head_dim;
    const uint n_steps = dim / STEP;
    const uint n_heads = params.value_heads;
    const uint n_keys = params.key_heads;
    const uint head = group.x / (dim / GROUP_COLUMNS);
    const uint column = group.x % (dim / GROUP_COLUMNS) * GROUP_COLUMNS + simd_group * COLUMNS + lane % COLUMNS;
    const uint first_key = 4 * (lane / COLUMNS);
    const uint key_head = params.grouped != 0 ? head / (n_heads / n_keys) : head % n_keys;
    const ulong row_size = ulong(2 * n_keys + n_heads) * dim;

    float4 state[MAX_STEPS];
    // The block whose state is at hand.
    uint held = NO_STATE;
    // What each lane knows of a row: how much it corrects and keeps.
    uint first_known = 0;
    uint end_known = 0;
    float known_rate = 0.0f;
    float known_kept = 0.0f;

    while (at != NO_ROW) {
        const uint next = row_behind(rows, at, params.n_rows);
        const uint from = state_from(rows[at], params.n_blocks);
        const uint kept_in = stored_to(rows, at, next, params.n_blocks);
        if (from == NO_STATE || from != held) {
            device const float *own = states + (ulong(from) * n_heads + head) * dim * dim + column;
#pragma unroll
            for (uint m = 0; m < MAX_STEPS; m++) {
                if (m < n_steps) {
                    state[m] = float4(0.0f);
                    if (from != NO_STATE) {
                        device const float *four = own + ulong(STEP * m + first_key) * dim;
                        state[m] = float4(four[0], four[dim], four[2 * dim], four[3 * dim]);
                    }
                }
            }
        }
        if (at >= end_known) {
            first_known = at;
            end_known = at + SIMD_WIDTH;
            const ulong own = ulong(min(at + lane, params.n_rows - 1)) * n_heads + head;
            known_rate = act_sigmoid(beta[own]);
            known_kept = precise::exp(decay[head] * softplus(alpha[own] + dt_bias[head]));
        }
        const float rate = simd_shuffle(known_rate, at - first_known);
        const float kept = simd_shuffle(known_kept, at - first_known);

        device const float *q = qkv + ulong(at) * row_size + ulong(key_head) * dim;
        device const float *k = q + ulong(n_keys) * dim;
        const float v = qkv[ulong(at) * row_size + ulong(2 * n_keys + head) * dim + column];
        float qq = 0.0f;
        float kk = 0.0f;
        float kq = 0.0f;
        for (uint i = lane; i < dim; i += SIMD_WIDTH) {
            qq += q[i] * q[i];
            kk += k[i] * k[i];
            kq += k[i] * q[i];
        }
        const float of_q = 1.0f / (sqrt(simd_sum(qq) + params.eps) * sqrt(float(dim)));
        const float of_k = 1.0f / sqrt(simd_sum(kk) + params.eps);
        kq = simd_sum(kq) * of_k;

        float4 found = float4(0.0f);
        float4 asked = float4(0.0f);
#pragma unroll
        for (uint m = 0; m < MAX_STEPS; m++) {
            if (m < n_steps) {
                found += state[m] * *(device const float4 *)(k + STEP * m + first_key);
                asked += state[m] * *(device const float4 *)(q + STEP * m + first_key);
            }
        }
        const float missing = rate * (v - kept * of_k * of_column(sum_of(found)));
        const float result = of_q * (kept * of_column(sum_of(asked)) + kq * missing);
        if (lane < COLUMNS) {
            to[(ulong(at) * n_heads + head) * dim + column] = result;
        }
#pragma unroll
        for (uint m = 0; m < MAX_STEPS; m++) {
            if (m < n_steps) {
                const float4 four = *(device const float4 *)(k + STEP * m + first_key);
                state[m] = kept * state[m] + four * (of_k * missing);
            }
        }
        if (kept_in != NO_STATE) {
            device float *own = states + (ulong(kept_in) * n_heads + head) * dim * dim + column;
#pragma unroll
            for (uint m = 0; m < MAX_STEPS; m++) {
                if (m < n_steps) {
                    device float *four = own + ulong(STEP * m + first_key) * dim;
                    four[0] = state[m].x;
                    four[dim] = state[m].y;
                    four[2 * dim] = state[m].z;
                    four[3 * dim] = state[m].w;
                }
            }
        }
        held = state_to(rows[at], params.n_blocks);
        at = next;
    }
}
