// delta_rule_f32: a state of (head_dim, head_dim) for each value head, which forgets a share of itself and then
// corrects what it has for a key
//
//     q, k = q / |q|, k / |k|    |x| = sqrt(sum of x^2 + eps);    q /= sqrt(head_dim)
//     g = exp(decay * softplus(alpha + dt_bias));   a = S' k;   b = S' q
//     d = sigmoid(beta) * (v - g a);   to = g b + (k . q) d;   S = g S + k d'
//
// The columns of S are independent: four lanes share one, each with a quarter of its numbers in registers, from the
// first row of a sequence to the last. What all columns of a head need of a row, q, k and the gates, is prepared for
// eight rows at a time.
//
// Launch:  x for 32 columns of a head, y a row each; 128 threads. Only the threadgroups of the first row of a
//          sequence do anything.
// Memory:  a state is read and written once a sequence; q, k and v of a row are read once by each threadgroup of
//          their heads. 16 KB of threadgroup memory for q and k.

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
constant constexpr uint SIMD_GROUPS = GROUP_COLUMNS / COLUMNS;
// Lanes of a column. They have four keys each of every STEP keys.
constant constexpr uint LANES = SIMD_WIDTH / COLUMNS;
constant constexpr uint STEP = 4 * LANES;
constant constexpr uint MAX_STEPS = 256 / STEP;
constant constexpr uint MAX_VECTORS = 256 / 4;
// Rows that are prepared at a time: two by each SIMD group, and the values of two by each lane of a column.
constant constexpr uint TILE = 2 * SIMD_GROUPS;

// Rows of one head. Those that are idle, or another sequence's, are prepared and not used.
struct Tile {
    float4 queries[TILE][MAX_VECTORS];
    float4 keys[TILE][MAX_VECTORS];
    // How much is corrected, how much is kept, and the product of key and query.
    float4 gates[TILE];
};

// The sum over the lanes of a column.
inline float of_column(float4 parts) {
    float value = (parts.x + parts.y) + (parts.z + parts.w);
    value += simd_shuffle_xor(value, COLUMNS);
    return value + simd_shuffle_xor(value, 2 * COLUMNS);
}

// Prepares a row. A SIMD group does it.
inline void prepare(
    threadgroup Tile &tile, uint t, device const float *q, device const float *k, float2 gates, uint dim,
    float eps, uint lane
) {
    device const float4 *queries = (device const float4 *)q;
    device const float4 *keys = (device const float4 *)k;
    float qq = 0.0f;
    float kk = 0.0f;
    float kq = 0.0f;
    for (uint i = lane; i < dim / 4; i += SIMD_WIDTH) {
        qq += dot(queries[i], queries[i]);
        kk += dot(keys[i], keys[i]);
        kq += dot(keys[i], queries[i]);
    }
    const float of_q = 1.0f / (sqrt(simd_sum(qq) + eps) * sqrt(float(dim)));
    const float of_k = 1.0f / sqrt(simd_sum(kk) + eps);
    kq = simd_sum(kq) * of_q * of_k;
    for (uint i = lane; i < dim / 4; i += SIMD_WIDTH) {
        tile.queries[t][i] = queries[i] * of_q;
        tile.keys[t][i] = keys[i] * of_k;
    }
    if (lane == 0) {
        tile.gates[t] = float4(gates, kq, 0.0f);
    }
}

// Takes a column on by a prepared row; the result.
inline float advance(
    thread float4 (&state)[MAX_STEPS], threadgroup const Tile &tile, uint t, float v, uint n_steps, uint part
) {
    const float4 gates = tile.gates[t];
    float4 found = float4(0.0f);
    float4 asked = float4(0.0f);
#pragma unroll
    for (uint m = 0; m < MAX_STEPS; m++) {
        if (m < n_steps) {
            found += state[m] * tile.keys[t][LANES * m + part];
            asked += state[m] * tile.queries[t][LANES * m + part];
        }
    }
    const float missing = gates.x * (v - gates.y * of_column(found));
#pragma unroll
    for (uint m = 0; m < MAX_STEPS; m++) {
        if (m < n_steps) {
            state[m] = gates.y * state[m] + missing * tile.keys[t][LANES * m + part];
        }
    }
    return gates.y * of_column(asked) + gates.z * missing;
}

// Whether this row and the next are of one sequence, the next goes on from this one, and overwrites its state.
inline bool is_run(device const Row *rows, uint at, uint n_rows, uint n_blocks) {
    if (at + 1 >= n_rows || !is_active(rows[at]) || !is_active(rows[at + 1])) {
        return false;
    }
    const uint to = state_to(rows[at], n_blocks);
    return rows[at].sequence == rows[at + 1].sequence && to != NO_STATE && to == state_from(rows[at + 1], n_blocks) &&
           to == state_to(rows[at + 1], n_blocks);
}

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
    threadgroup Tile tile;

    uint at = group.y;
    if (!is_active(rows[at]) || row_before(rows, at) != NO_ROW) {
        return;
    }
    const uint dim = HAS_HEAD_DIM ? FC_HEAD_DIM : params.head_dim;
    const uint n_steps = dim / STEP;
    const uint n_rows = params.n_rows;
    const uint n_blocks = params.n_blocks;
    const uint n_heads = params.value_heads;
    const uint n_keys = params.key_heads;
    const uint head = group.x / (dim / GROUP_COLUMNS);
    const uint part = lane / COLUMNS;
    const uint column = group.x % (dim / GROUP_COLUMNS) * GROUP_COLUMNS + simd_group * COLUMNS + lane % COLUMNS;
    const uint key_head = params.grouped != 0 ? head / (n_heads / n_keys) : head % n_keys;
    const ulong row_size = ulong(2 * n_keys + n_heads) * dim;
    device const float *q = qkv + ulong(key_head) * dim;
    device const float *k = q + ulong(n_keys) * dim;
    device const float *v = qkv + ulong(2 * n_keys + head) * dim + column;
    device float *results = to + ulong(head) * dim + column;

    float4 state[MAX_STEPS];
    // The block whose state is at hand.
    uint held = NO_STATE;
    // The rows that are prepared, and their values: those of rows `part` and `part + LANES`.
    uint first = 0;
    uint end = 0;
    float2 values = float2(0.0f);
    // Whether all of them, and the one behind, are a run.
    bool all_run = false;

    while (at != NO_ROW) {
        const uint from = state_from(rows[at], n_blocks);
        if (from == NO_STATE || from != held) {
            device const float *own = states + (ulong(from) * n_heads + head) * dim * dim + column;
#pragma unroll
            for (uint m = 0; m < MAX_STEPS; m++) {
                if (m < n_steps) {
                    state[m] = float4(0.0f);
                    if (from != NO_STATE) {
                        device const float *four = own + ulong(STEP * m + 4 * part) * dim;
                        state[m] = float4(four[0], four[dim], four[2 * dim], four[3 * dim]);
                    }
                }
            }
        }
        if (at >= end) {
            first = at;
            end = at + TILE;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint t = simd_group; t < TILE && first + t < n_rows; t += SIMD_GROUPS) {
                const ulong own = ulong(first + t) * n_heads + head;
                const float kept = precise::exp(decay[head] * softplus(alpha[own] + dt_bias[head]));
                const ulong row = ulong(first + t) * row_size;
                prepare(tile, t, q + row, k + row, float2(act_sigmoid(beta[own]), kept), dim, params.eps, lane);
            }
            values.x = v[ulong(min(first + part, n_rows - 1)) * row_size];
            values.y = v[ulong(min(first + part + LANES, n_rows - 1)) * row_size];
            const bool is_one = lane >= TILE || is_run(rows, first + lane, n_rows, n_blocks);
            all_run = simd_min(is_one ? 1u : 0u) != 0;
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (at == first && all_run) {
            for (uint t = 0; t < TILE; t++) {
                const float value = simd_shuffle(t < LANES ? values.x : values.y, t % LANES * COLUMNS + lane % COLUMNS);
                const float result = advance(state, tile, t, value, n_steps, part);
                if (part == 0) {
                    results[ulong(first + t) * n_heads * dim] = result;
                }
            }
            at = end;
            held = state_to(rows[at - 1], n_blocks);
            continue;
        }
        const uint t = at - first;
        const float value = simd_shuffle(t < LANES ? values.x : values.y, t % LANES * COLUMNS + lane % COLUMNS);
        const float result = advance(state, tile, t, value, n_steps, part);
        if (part == 0) {
            results[ulong(at) * n_heads * dim] = result;
        }
        const uint next = row_behind(rows, at, n_rows);
        const uint kept_in = stored_to(rows, at, next, n_blocks);
        if (kept_in != NO_STATE) {
            device float *own = states + (ulong(kept_in) * n_heads + head) * dim * dim + column;
#pragma unroll
            for (uint m = 0; m < MAX_STEPS; m++) {
                if (m < n_steps) {
                    device float *four = own + ulong(STEP * m + 4 * part) * dim;
                    four[0] = state[m].x;
                    four[dim] = state[m].y;
                    four[2 * dim] = state[m].z;
                    four[3 * dim] = state[m].w;
                }
            }
        }
        held = state_to(rows[at], n_blocks);
        at = next;
    }
}
