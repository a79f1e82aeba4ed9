// ssd_f32: Mamba-2: a state of (head_dim, state_size) for each head, of which a share is forgotten
//
//     D = softplus(dt + dt_bias);   S = exp(D a) S + D x B';   to = S C + d x
//
// The rows of S are independent: eight lanes share one, each with an eighth of its numbers in registers, from the
// first row of a sequence to the last.
//
// Launch:  x for 16 rows of a head's state, y a row each; 128 threads. Only the threadgroups of the first row of a
//          sequence do anything.
// Memory:  a state is read and written once a sequence; B and C of a row are read from the cache by all heads of
//          their group.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/reduce.h"
#include "include/states.h"

using namespace metal;

// Lanes of a row of S, and rows of a SIMD group and of a threadgroup.
constant constexpr uint LANES = 8;
constant constexpr uint SIMD_ROWS = SIMD_WIDTH / LANES;
constant constexpr uint GROUP_ROWS = 16;
// Numbers that the lanes of a row have next to each other, four each.
constant constexpr uint STEP = 4 * LANES;
constant constexpr uint MAX_STEPS = 256 / STEP;

// The sum over the lanes of a row.
inline float of_row(float4 parts) {
    float value = (parts.x + parts.y) + (parts.z + parts.w);
    value += simd_shuffle_xor(value, 1);
    value += simd_shuffle_xor(value, 2);
    return value + simd_shuffle_xor(value, 4);
}

kernel void ssd_f32(
    device const float *xbc             [[buffer(0)]],
    device const float *dt              [[buffer(1)]],
    device const float *dt_bias         [[buffer(2)]],
    device const float *a               [[buffer(3)]],
    device const float *d               [[buffer(4)]],
    device const Row *rows              [[buffer(5)]],
    device float *states                [[buffer(6)]],
    device float *to                    [[buffer(7)]],
    constant SsdParams &params          [[buffer(8)]],
    uint2 group                         [[threadgroup_position_in_grid]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]]
) {
    uint at = group.y;
    if (!is_active(rows[at]) || row_before(rows, at) != NO_ROW) {
        return;
    }
    const uint size = params.state_size;
    const uint dim = params.head_dim;
    const uint n_steps = size / STEP;
    const uint n_heads = params.heads;
    const uint of_head = (dim + GROUP_ROWS - 1) / GROUP_ROWS;
    const uint head = group.x / of_head;
    const uint row = group.x % of_head * GROUP_ROWS + simd_group * SIMD_ROWS + lane / LANES;
    // Lanes beyond the last row of a head compute it once more, and keep it to themselves.
    const bool is_there = row < dim;
    const uint element = head * dim + min(row, dim - 1);
    const uint first = 4 * (lane % LANES);
    const uint of_group = head / (n_heads / params.groups) * size + first;
    const ulong row_size = ulong(n_heads) * dim + 2 * ulong(params.groups) * size;

    float4 state[MAX_STEPS];
    // The block whose state is at hand.
    uint held = NO_STATE;
    // What each lane knows of a row: how much is added and kept.
    uint first_known = 0;
    uint end_known = 0;
    float known_delta = 0.0f;
    float known_kept = 0.0f;

    while (at != NO_ROW) {
        const uint next = row_behind(rows, at, params.n_rows);
        const uint from = state_from(rows[at], params.n_blocks);
        const uint kept_in = stored_to(rows, at, next, params.n_blocks);
        if (from == NO_STATE || from != held) {
            device const float *own = states + (ulong(from) * n_heads * dim + element) * size + first;
#pragma unroll
            for (uint m = 0; m < MAX_STEPS; m++) {
                if (m < n_steps) {
                    state[m] = float4(0.0f);
                    if (from != NO_STATE) {
                        state[m] = *(device const float4 *)(own + STEP * m);
                    }
                }
            }
        }
        if (at >= end_known) {
            first_known = at;
            end_known = at + SIMD_WIDTH;
            const uint known = min(at + lane, params.n_rows - 1);
            known_delta = softplus(dt[ulong(known) * params.dt_stride + head] + dt_bias[head]);
            known_kept = precise::exp(known_delta * a[head]);
        }
        const float delta = simd_shuffle(known_delta, at - first_known);
        const float kept = simd_shuffle(known_kept, at - first_known);

        device const float *own = xbc + ulong(at) * row_size;
        const float x = own[element];
        device const float *keys = own + ulong(n_heads) * dim + of_group;
        device const float *queries = keys + ulong(params.groups) * size;
        const float added = delta * x;
        float4 sums = float4(0.0f);
#pragma unroll
        for (uint m = 0; m < MAX_STEPS; m++) {
            if (m < n_steps) {
                state[m] = kept * state[m] + added * *(device const float4 *)(keys + STEP * m);
                sums += state[m] * *(device const float4 *)(queries + STEP * m);
            }
        }
        const float sum = of_row(sums);
        if (is_there && lane % LANES == 0) {
            to[ulong(at) * n_heads * dim + element] = sum + d[head] * x;
        }
        if (kept_in != NO_STATE && is_there) {
            device float *place = states + (ulong(kept_in) * n_heads * dim + element) * size + first;
#pragma unroll
            for (uint m = 0; m < MAX_STEPS; m++) {
                if (m < n_steps) {
                    *(device float4 *)(place + STEP * m) = state[m];
                }
            }
        }
        held = state_to(rows[at], params.n_blocks);
        at = next;
    }
}
