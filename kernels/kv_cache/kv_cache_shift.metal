// kv_cache_shift_f16, kv_cache_shift_neox_f16: drops the oldest `shift` positions of a cache.
//
//     k[p] = turn(k[p + shift], -shift),   v[p] = v[p + shift],   for p in 0 .. new_len
//
// Keys are stored turned to their position: what moves down by `shift` is turned back by as much.
// Only for caches that never wrapped: shift + new_len <= max_seq_len.
//
// Launch:  one thread for each pair of each head, 256 a threadgroup.
// Memory:  source and destination overlap. A thread walks its own pair through all positions in
//          ascending order, so that it reads each element before it is overwritten, by itself.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/rope.h"

using namespace metal;

template <typename Style>
kernel void kv_cache_shift(
    device half *k_cache                   [[buffer(0)]],
    device half *v_cache                   [[buffer(1)]],
    constant KVCacheShiftParams &params    [[buffer(2)]],
    device const float *freqs              [[buffer(3)]],
    uint index                             [[thread_position_in_grid]]
) {
    const uint head_dim = params.head_dim;
    const uint half_dim = head_dim / 2;
    const uint head = index / half_dim;
    const uint pair = index % half_dim;
    if (head >= params.n_kv_heads) {
        return;
    }
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const Rotation rotation = frequencies.at(-float(params.shift), pair);
    const uint a = Style::first(pair, head_dim);
    const uint b = Style::second(pair, head_dim);
    const ulong base = ulong(head) * params.max_seq_len * head_dim;
    const ulong distance = ulong(params.shift) * head_dim;
    device half *k = k_cache + base;
    device half *v = v_cache + base;

    const uint room = params.max_seq_len - min(params.shift, params.max_seq_len);
    const uint n_moved = min(params.new_len, room);
    for (uint position = 0; position < n_moved; position++) {
        const float2 key = float2(float(k[distance + a]), float(k[distance + b]));
        const float2 turned = rotation.apply(key);
        k[a] = half(turned.x);
        k[b] = half(turned.y);
        v[a] = v[distance + a];
        v[b] = v[distance + b];
        k += head_dim;
        v += head_dim;
    }
}

typedef decltype(kv_cache_shift<Interleaved>) kv_cache_shift_t;

template [[host_name("kv_cache_shift_f16")]] kernel kv_cache_shift_t kv_cache_shift<Interleaved>;
template [[host_name("kv_cache_shift_neox_f16")]] kernel kv_cache_shift_t kv_cache_shift<SplitHalves>;
