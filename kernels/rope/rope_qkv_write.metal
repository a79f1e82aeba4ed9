// rope_qkv_write_f16, rope_neox_qkv_write_f16: RoPE of q and k of one token, and the write of k and v.
//
// The qkv buffer holds the outputs of the three projections: q turns in place, the turned k and the
// plain v go as halves to slot pos % max_seq_len of the caches (n_kv_heads, max_seq_len, head_dim).
//
// Launch:  one thread a pair, 256 a threadgroup, over the query heads. A thread of query head h also
//          serves key and value head h where there is one.
// Memory:  each element is read once and written once; a thread's angle serves q and k.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/rope.h"

using namespace metal;

template <typename Style>
kernel void rope_qkv_write(
    device float *qkv                      [[buffer(0)]],
    device half *k_cache                   [[buffer(1)]],
    device half *v_cache                   [[buffer(2)]],
    constant RoPEQKVWriteParams &params    [[buffer(3)]],
    device const float *freqs              [[buffer(4)]],
    uint index                             [[thread_position_in_grid]]
) {
    const uint head_dim = params.head_dim;
    const uint half_dim = head_dim / 2;
    const uint head = index / half_dim;
    const uint pair = index % half_dim;
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const Rotation rotation = frequencies.at(float(params.pos), pair);
    const uint a = Style::first(pair, head_dim);
    const uint b = Style::second(pair, head_dim);

    if (head < params.n_heads) {
        device float *q = qkv + head * head_dim;
        const float2 turned = rotation.apply(float2(q[a], q[b]));
        q[a] = turned.x;
        q[b] = turned.y;
    }
    if (head < params.n_kv_heads) {
        device const float *k = qkv + params.k_elem_offset + head * head_dim;
        device const float *v = qkv + params.v_elem_offset + head * head_dim;
        const ulong slot = cache_row(head, params.pos, params.max_seq_len, head_dim);
        const float2 turned = rotation.apply(float2(k[a], k[b]));
        k_cache[slot + a] = half(turned.x);
        k_cache[slot + b] = half(turned.y);
        v_cache[slot + a] = half(v[a]);
        v_cache[slot + b] = half(v[b]);
    }
}

typedef decltype(rope_qkv_write<Interleaved>) rope_qkv_write_t;

template [[host_name("rope_qkv_write_f16")]] kernel rope_qkv_write_t rope_qkv_write<Interleaved>;
template [[host_name("rope_neox_qkv_write_f16")]] kernel rope_qkv_write_t rope_qkv_write<SplitHalves>;
