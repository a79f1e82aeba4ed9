// rope_batch_kv_write_f16, rope_neox_batch_kv_write_f16: RoPE of q and k of many tokens, and the write
// of k and v.
//
// q (seq_len, n_heads, head_dim) turns in place. The turned k and the plain v, both
// (seq_len, n_kv_heads, head_dim), go as halves to the caches (n_kv_heads, max_seq_len, head_dim): row r
// has position pos + r and slot (pos + r) % max_seq_len. Of more rows than slots the last ones stay.
//
// Launch:  one thread a pair, 256 a threadgroup; x walks the pairs of the query heads, y the rows. A
//          thread of query head h also serves key and value head h where there is one.
// Memory:  each element is read once and written once; a thread's angle serves q and k.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/rope.h"

using namespace metal;

template <typename Style>
kernel void rope_batch_kv_write(
    device float *q                            [[buffer(0)]],
    device const float *k                      [[buffer(1)]],
    device const float *v                      [[buffer(2)]],
    device half *k_cache                       [[buffer(3)]],
    device half *v_cache                       [[buffer(4)]],
    constant RoPEBatchKVWriteParams &params    [[buffer(5)]],
    device const float *freqs                  [[buffer(6)]],
    uint2 at                                   [[thread_position_in_grid]]
) {
    const uint head_dim = params.head_dim;
    const uint half_dim = head_dim / 2;
    const uint row = at.y;
    const uint head = at.x / half_dim;
    const uint pair = at.x % half_dim;
    if (row >= params.seq_len) {
        return;
    }
    const uint position = params.pos + row;
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const Rotation rotation = frequencies.at(float(position), pair);
    const uint a = Style::first(pair, head_dim);
    const uint b = Style::second(pair, head_dim);

    if (head < params.n_heads) {
        const uint stride = params.q_stride == 0 ? params.n_heads * head_dim : params.q_stride;
        device float *values = q + ulong(row) * stride + head * head_dim;
        const float2 turned = rotation.apply(float2(values[a], values[b]));
        values[a] = turned.x;
        values[b] = turned.y;
    }
    const bool stays = params.seq_len - row <= params.max_seq_len;
    if (head < params.n_kv_heads && stays) {
        const uint stride = params.kv_stride == 0 ? params.n_kv_heads * head_dim : params.kv_stride;
        const ulong source = ulong(row) * stride + head * head_dim;
        const ulong slot = cache_row(head, position, params.max_seq_len, head_dim);
        const float2 turned = rotation.apply(float2(k[source + a], k[source + b]));
        k_cache[slot + a] = half(turned.x);
        k_cache[slot + b] = half(turned.y);
        v_cache[slot + a] = half(v[source + a]);
        v_cache[slot + b] = half(v[source + b]);
    }
}

typedef decltype(rope_batch_kv_write<Interleaved>) rope_batch_kv_write_t;

template [[host_name("rope_batch_kv_write_f16")]]
kernel rope_batch_kv_write_t rope_batch_kv_write<Interleaved>;
template [[host_name("rope_neox_batch_kv_write_f16")]]
kernel rope_batch_kv_write_t rope_batch_kv_write<SplitHalves>;
