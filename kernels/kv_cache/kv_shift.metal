// kv_shift_f16, kv_shift_neox_f16: drops `shift` slots of a sequence after the first `keep`.
//
//     k[keep + p] = turn(k[keep + shift + p], -shift),   v[keep + p] = v[keep + shift + p],
//     for p in 0 .. new_len, slots as in include/pages.h
//
// Keys are stored turned to their position: what moves down by `shift` is turned back by as much. With FC_KEY_CENTRE, which is for
// 8 bits, what is stored is k - centre: it becomes turn(stored + centre, -shift) - centre.
//
// Launch:  one thread for each pair of each head, 256 a threadgroup. In 8 bits one threadgroup a head, a
//          thread for each pair, in whole SIMD groups.
// Memory:  source and destination overlap. A thread walks its own pair through all slots in ascending
//          order, so that it reads each element before it is overwritten, by itself. In 8 bits a key is
//          widened, turned and gathered in 2.3 KB of threadgroup memory, and stored after a barrier: all of
//          a slot has been read long before it is overwritten. Values move with their scales.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/pages.h"
#include "include/reduce.h"
#include "include/rope.h"

using namespace metal;

// Moves the numbers of a slot with their scales, two numbers at a time. `thread_of` is a thread and their
// number.
inline void move_q8(device half *pool, SlotAt from, SlotAt to, uint head_dim, uint2 thread_of) {
    device ushort *words = (device ushort *)pool;
    for (uint i = thread_of.x; i < head_dim / 2; i += thread_of.y) {
        words[to.numbers / 2 + i] = words[from.numbers / 2 + i];
    }
    for (uint i = thread_of.x; i < head_dim / Q8_BLOCK; i += thread_of.y) {
        words[to.scales + i] = words[from.scales + i];
    }
}

template <typename Style>
kernel void kv_shift(
    device half *k                    [[buffer(0)]],
    device half *v                    [[buffer(1)]],
    constant KVShiftParams &params    [[buffer(2)]],
    device const uint *table          [[buffer(3)]],
    device const float *freqs         [[buffer(4)]],
    device const float *centre        [[buffer(5)]],  // (n_kv_heads, head_dim), read only with FC_KEY_CENTRE
    uint index                        [[thread_position_in_grid]],
    uint group                        [[threadgroup_position_in_grid]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint simd_group                   [[simdgroup_index_in_threadgroup]],
    uint lane                         [[thread_index_in_simdgroup]],
    uint n_simd_groups                [[simdgroups_per_threadgroup]]
) {
    threadgroup float turned_key[Q8_MAX_HEAD_DIM];
    const uint head_dim = params.head_dim;
    const uint half_dim = head_dim / 2;
    const uint head = KV_Q8 ? group : index / half_dim;
    const uint pair = KV_Q8 ? min(thread_index, half_dim - 1) : index % half_dim;
    if (head >= params.n_kv_heads) {
        return;
    }
    const Frequencies frequencies = { freqs, params.theta, params.freq_scale, head_dim };
    const Rotation rotation = frequencies.at(-float(params.shift), pair);
    const uint a = Style::first(pair, head_dim);
    const uint b = Style::second(pair, head_dim);
    const Slots slots = slots_of(table, params, params.sequence, head);
    float2 centre_of_pair = float2(0.0f);
    if (HAS_KEY_CENTRE) {
        centre_of_pair = float2(centre[head * head_dim + a], centre[head * head_dim + b]);
    }

    for (uint slot = params.keep; slot < params.keep + params.new_len; slot++) {
        const SlotAt from = slots.at(slot + params.shift);
        const SlotAt to = slots.at(slot);
        const float2 stored = float2(load_one(k, from, a), load_one(k, from, b));
        const float2 turned = HAS_KEY_CENTRE ? rotation.apply(stored + centre_of_pair) - centre_of_pair
                                             : rotation.apply(stored);
        if (KV_Q8) {
            if (thread_index < half_dim) {
                turned_key[a] = turned.x;
                turned_key[b] = turned.y;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
            store_q8(k, to, turned_key, head_dim, { simd_group, n_simd_groups, lane });
            move_q8(v, from, to, head_dim, uint2(thread_index, n_simd_groups * SIMD_WIDTH));
            threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        } else {
            k[to.numbers + a] = half(turned.x);
            k[to.numbers + b] = half(turned.y);
            v[to.numbers + a] = v[from.numbers + a];
            v[to.numbers + b] = v[from.numbers + b];
        }
    }
}

typedef decltype(kv_shift<Interleaved>) kv_shift_t;

template [[host_name("kv_shift_f16")]] kernel kv_shift_t kv_shift<Interleaved>;
template [[host_name("kv_shift_neox_f16")]] kernel kv_shift_t kv_shift<SplitHalves>;
