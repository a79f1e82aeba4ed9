// head_norm_rope_neox_kv_write_f16, head_norm_rope_neox_batch_kv_write_f16: for models that normalise
// each head of q and k (Qwen 3, Gemma 3).
//
//     q = rope(q / rms(q) * q_norm),  k_cache[slot] = rope(k / rms(k) * k_norm),  v_cache[slot] = v
//
// Pairs are (d, d + head_dim / 2). The first kernel takes one token from the contiguous qkv buffer, the
// second takes many from separate buffers; slots are as in rope_batch_kv_write.metal.
//
// Launch:  one threadgroup a head (x) and row (y), a thread for each pair, in whole SIMD groups. The
//          threadgroup of query head h also serves key and value head h where there is one.
// Memory:  each element is read once and written once; 128 bytes of threadgroup memory for the sums.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/head_norm.h"
#include "include/rope.h"

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
        return rotation.apply(normal * load(weight));
    }

    void store(device float *out, float2 value) const {
        if (exists) {
            out[a] = value.x;
            out[b] = value.y;
        }
    }

    void store(device half *out, float2 value) const {
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

kernel void head_norm_rope_neox_kv_write_f16(
    device float *qkv                      [[buffer(0)]],
    device half *k_cache                   [[buffer(1)]],
    device half *v_cache                   [[buffer(2)]],
    constant RoPEQKVWriteParams &params    [[buffer(3)]],
    device const float *q_norm             [[buffer(4)]],
    device const float *k_norm             [[buffer(5)]],
    device const float *freqs              [[buffer(6)]],
    uint head                              [[threadgroup_position_in_grid]],
    uint thread_index                      [[thread_index_in_threadgroup]],
    uint simd_group                        [[simdgroup_index_in_threadgroup]],
    uint lane                              [[thread_index_in_simdgroup]],
    uint n_simd_groups                     [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];
    const SimdPlace place = { simd_group, lane, n_simd_groups };
    const uint head_dim = params.head_dim;
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const HeadPair pair = head_pair(thread_index, head_dim, params.eps, frequencies, float(params.pos));

    if (head < params.n_heads) {
        device float *q = qkv + head * head_dim;
        pair.store(q, pair.norm_and_turn(q, q_norm, shared, place));
    }
    if (head < params.n_kv_heads) {
        device const float *k = qkv + params.k_elem_offset + head * head_dim;
        device const float *v = qkv + params.v_elem_offset + head * head_dim;
        const ulong slot = cache_row(head, params.pos, params.max_seq_len, head_dim);
        pair.store(k_cache + slot, pair.norm_and_turn(k, k_norm, shared, place));
        pair.store(v_cache + slot, pair.load(v));
    }
}

kernel void head_norm_rope_neox_batch_kv_write_f16(
    device float *q                            [[buffer(0)]],
    device const float *k                      [[buffer(1)]],
    device const float *v                      [[buffer(2)]],
    device half *k_cache                       [[buffer(3)]],
    device half *v_cache                       [[buffer(4)]],
    constant RoPEBatchKVWriteParams &params    [[buffer(5)]],
    device const float *q_norm                 [[buffer(6)]],
    device const float *k_norm                 [[buffer(7)]],
    device const float *freqs                  [[buffer(8)]],
    uint2 at                                   [[threadgroup_position_in_grid]],
    uint thread_index                          [[thread_index_in_threadgroup]],
    uint simd_group                            [[simdgroup_index_in_threadgroup]],
    uint lane                                  [[thread_index_in_simdgroup]],
    uint n_simd_groups                         [[simdgroups_per_threadgroup]]
) {
    threadgroup float shared[MAX_SIMD_GROUPS];
    const SimdPlace place = { simd_group, lane, n_simd_groups };
    const uint head = at.x;
    const uint row = at.y;
    const uint position = params.pos + row;
    const uint head_dim = params.head_dim;
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const HeadPair pair = head_pair(thread_index, head_dim, params.eps, frequencies, float(position));

    if (head < params.n_heads) {
        const uint stride = params.q_stride == 0 ? params.n_heads * head_dim : params.q_stride;
        device float *values = q + ulong(row) * stride + head * head_dim;
        pair.store(values, pair.norm_and_turn(values, q_norm, shared, place));
    }
    const bool stays = params.seq_len - row <= params.max_seq_len;
    if (head < params.n_kv_heads && stays) {
        const uint stride = params.kv_stride == 0 ? params.n_kv_heads * head_dim : params.kv_stride;
        const ulong source = ulong(row) * stride + head * head_dim;
        const ulong slot = cache_row(head, position, params.max_seq_len, head_dim);
        pair.store(k_cache + slot, pair.norm_and_turn(k + source, k_norm, shared, place));
        pair.store(v_cache + slot, pair.load(v + source));
    }
}
