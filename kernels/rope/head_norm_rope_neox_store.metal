// head_norm_rope_neox_store_f16: for models that normalise each head of q and k (Qwen 3, Gemma 3).
//
//     q = rope(q / rms(q) * q_norm),  k_pages[slot] = rope(k / rms(k) * k_norm),  v_pages[slot] = v
//
// or, with FC_TURN_FIRST, q = rope(q / rms(q)) * q_norm,  k_pages[slot] = rope(k / rms(k)),
// for each active row; pairs are (d, d + turned_dim / 2), rows and slots as in rope_store.metal.
//
// Launch:  one threadgroup a head (x) and row (y), a thread for each pair, in whole SIMD groups. The
//          threadgroup of query head h also serves key and value head h where there is one.
// Memory:  each element is read once and written once; 128 bytes of threadgroup memory for the sums, and
//          2.3 KB for a turned key that is stored in 8 bits.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/head_norm.h"
#include "include/pages.h"
#include "include/rope.h"
#include "include/row_table.h"

using namespace metal;

// The two elements that a thread owns in every head, and what it does to them.
struct HeadPair {
    uint a;
    uint b;
    uint head_dim;
    float eps;
    bool exists;  // false for the threads that fill up the last SIMD group
    Rotation rotation;

    float2 load(device const float *values) const {
        return exists ? float2(values[a], values[b]) : float2(0.0f);
    }

    float2 norm_and_turn(
        device const float *values, device const float *weight,
        threadgroup float *shared, SimdPlace place
    ) const {
        const float2 normal = head_norm(load(values), head_dim, eps, shared, place);
        return rotation.apply(TURN_FIRST ? normal : normal * load(weight));
    }

    template <typename Out>
    void store(Out out, float2 value) const {
        if (exists) {
            out[a] = value.x;
            out[b] = value.y;
        }
    }

    void store_halves(device half *out, float2 value) const {
        if (exists) {
            out[a] = half(value.x);
            out[b] = half(value.y);
        }
    }
};

inline HeadPair head_pair(
    uint thread_index, uint head_dim, float eps, Frequencies frequencies, float position
) {
    const uint half_dim = head_dim / 2;
    const uint pair = min(thread_index, half_dim - 1);
    return {
        SplitHalves::first(pair, head_dim), SplitHalves::second(pair, head_dim), head_dim, eps,
        thread_index < half_dim, frequencies.at(position, pair),
    };
}

kernel void head_norm_rope_neox_store_f16(
    device float *q                     [[buffer(0)]],
    device const float *k               [[buffer(1)]],
    device const float *v               [[buffer(2)]],
    device half *k_pages                [[buffer(3)]],
    device half *v_pages                [[buffer(4)]],
    constant RopeStoreParams &params    [[buffer(5)]],
    device const Row *rows              [[buffer(6)]],
    device const uint *table            [[buffer(7)]],
    device const float *freqs           [[buffer(8)]],
    device const float *q_norm          [[buffer(9)]],
    device const float *k_norm          [[buffer(10)]],
    uint2 at                            [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];
    threadgroup float turned_key[Q8_MAX_HEAD_DIM];
    const SimdPlace place = { simd_group, lane, n_simd_groups };
    const uint head = at.x;
    device const Row &row = rows[at.y];
    if (!is_active(row)) {
        return;
    }
    const uint head_dim = params.head_dim;
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const HeadPair pair = head_pair(thread_index, head_dim, params.eps, frequencies, float(row.position));

    if (head < params.n_heads) {
        const uint stride = params.q_stride == 0 ? params.n_heads * head_dim : params.q_stride;
        device float *values = q + ulong(at.y) * stride + head * head_dim;
        const float2 turned = pair.norm_and_turn(values, q_norm, shared, place);
        pair.store(values, TURN_FIRST ? turned * pair.load(q_norm) : turned);
    }
    if (head < params.n_kv_heads) {
        const uint stride = params.kv_stride == 0 ? params.n_kv_heads * head_dim : params.kv_stride;
        const ulong source = ulong(at.y) * stride + head * head_dim;
        const SlotAt slot = slots_of(table, params, row.sequence, head).at(row.slot);
        const float2 turned = pair.norm_and_turn(k + source, k_norm, shared, place);
        if (KV_Q8) {
            const HeadPlace in_head = { simd_group, n_simd_groups, lane };
            pair.store(turned_key, turned);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            store_q8(k_pages, slot, turned_key, head_dim, in_head);
            store_q8(v_pages, slot, v + source, head_dim, in_head);
        } else {
            pair.store_halves(k_pages + slot.numbers, turned);
            pair.store_halves(v_pages + slot.numbers, pair.load(v + source));
        }
    }
}
