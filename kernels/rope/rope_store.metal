// rope_store_f16, rope_neox_store_f16: RoPE of q and k of some rows, and the storing of k and v.
//
// For each active row: q (n_rows, n_heads, head_dim) turns in place by the row's position; the turned k and
// the plain v, both (n_rows, n_kv_heads, head_dim), go to the row's slot (include/pages.h).
//
// With FC_KEY_CENTRE, which is for 8 bits, the turned k is stored less the centre of its head. All scores of a query lose the same
// by that, which softmax does not see; and what all keys have in common is not rounded.
//
// Launch:  one thread a pair, 256 a threadgroup; x walks the pairs of the query heads, y the rows. A
//          thread of query head h also serves key and value head h where there is one. In 8 bits one
//          threadgroup a head (x) and row (y), a thread for each pair, in whole SIMD groups: the turned
//          key is gathered in 2.3 KB of threadgroup memory, where its blocks find their largest numbers.
// Memory:  each element is read once and written once; a thread's angle serves q and k.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/pages.h"
#include "include/rope.h"
#include "include/row_table.h"

using namespace metal;

template <typename Style>
kernel void rope_store(
    device float *q                     [[buffer(0)]],
    device const float *k               [[buffer(1)]],
    device const float *v               [[buffer(2)]],
    device half *k_pages                [[buffer(3)]],
    device half *v_pages                [[buffer(4)]],
    constant RopeStoreParams &params    [[buffer(5)]],
    device const Row *rows              [[buffer(6)]],
    device const uint *table            [[buffer(7)]],
    device const float *freqs           [[buffer(8)]],
    device const float *centre          [[buffer(9)]],  // (n_kv_heads, head_dim), read only with FC_KEY_CENTRE
    uint2 at                            [[thread_position_in_grid]],
    uint2 group                         [[threadgroup_position_in_grid]],
    uint thread_index                   [[thread_index_in_threadgroup]],
    uint simd_group                     [[simdgroup_index_in_threadgroup]],
    uint lane                           [[thread_index_in_simdgroup]],
    uint n_simd_groups                  [[simdgroups_per_threadgroup]]
) {
    threadgroup float turned_key[Q8_MAX_HEAD_DIM];
    const uint head_dim = params.head_dim;
    const uint half_dim = head_dim / 2;
    const uint head = KV_Q8 ? group.x : at.x / half_dim;
    const uint pair = KV_Q8 ? min(thread_index, half_dim - 1) : at.x % half_dim;
    const bool exists = !KV_Q8 || thread_index < half_dim;
    if (at.y >= params.n_rows || !is_active(rows[at.y])) {
        return;
    }
    device const Row &row = rows[at.y];
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const Rotation rotation = frequencies.at(float(row.position), pair);
    const uint a = Style::first(pair, head_dim);
    const uint b = Style::second(pair, head_dim);

    if (exists && head < params.n_heads) {
        const uint stride = params.q_stride == 0 ? params.n_heads * head_dim : params.q_stride;
        device float *values = q + ulong(at.y) * stride + head * head_dim;
        const float2 turned = rotation.apply(float2(values[a], values[b]));
        values[a] = turned.x;
        values[b] = turned.y;
    }
    if (head < params.n_kv_heads) {
        const uint stride = params.kv_stride == 0 ? params.n_kv_heads * head_dim : params.kv_stride;
        const ulong source = ulong(at.y) * stride + head * head_dim;
        const SlotAt slot = slots_of(table, params, row.sequence, head).at(row.slot);
        float2 turned = rotation.apply(float2(k[source + a], k[source + b]));
        if (HAS_KEY_CENTRE) {
            turned -= float2(centre[head * head_dim + a], centre[head * head_dim + b]);
        }
        if (KV_Q8) {
            const HeadPlace place = { simd_group, n_simd_groups, lane };
            if (exists) {
                turned_key[a] = turned.x;
                turned_key[b] = turned.y;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            store_q8(k_pages, slot, turned_key, head_dim, place);
            store_q8(v_pages, slot, v + source, head_dim, place);
        } else {
            k_pages[slot.numbers + a] = half(turned.x);
            k_pages[slot.numbers + b] = half(turned.y);
            v_pages[slot.numbers + a] = half(v[source + a]);
            v_pages[slot.numbers + b] = half(v[source + b]);
        }
    }
}

typedef decltype(rope_store<Interleaved>) rope_store_t;

template [[host_name("rope_store_f16")]] kernel rope_store_t rope_store<Interleaved>;
template [[host_name("rope_neox_store_f16")]] kernel rope_store_t rope_store<SplitHalves>;
