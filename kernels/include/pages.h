// Pages: where the key or the value of a slot lies, and what is stored there.
//
// The keys of a layer are (n_pages, n_kv_heads, page, head_dim), the values as many; a page has
// page = 1 << page_shift slots, a multiple of 32. Slot s of sequence q lies in page
// table[q * table_stride + s / page], at place s % page. The host has proven that every slot in use has a
// page that exists.
//
// Numbers are halves or, with FC_KV_Q8, whole numbers q of 8 bits with a scale (a half) for every 32
// neighbouring elements of a head, x ~ scale * q. A page of one head then has the numbers of all its slots
// first, (page, head_dim) bytes, and after them its scales, (page, head_dim / 32) halves.
#pragma once

#include <metal_stdlib>

#include "include/pages_constants.h"

using namespace metal;

// Elements that share a scale, and the largest of their whole numbers.
constant constexpr uint Q8_BLOCK = 32;
constant constexpr float Q8_LARGEST = 127.0f;
// The largest head that is stored in 8 bits.
constant constexpr uint Q8_MAX_HEAD_DIM = 576;

// Where one head of a slot lies in a pool.
struct SlotAt {
    ulong numbers;  // the first number, counted in numbers: halves or bytes
    ulong scales;   // the first scale, counted in halves; only with FC_KV_Q8

    // The slot that lies `n` places further in the same page.
    SlotAt after(uint n, uint head_dim) const {
        return { numbers + n * head_dim, scales + n * (head_dim / Q8_BLOCK) };
    }
};

// The slots of one sequence, as one head sees them.
struct Slots {
    device const uint *pages;  // the sequence's entries of the page table
    uint page_shift;
    uint n_kv_heads;
    uint head;
    uint head_dim;

    // Up to the next multiple of 32 the slots that follow lie one after the other.
    SlotAt at(uint slot) const {
        const ulong page = ulong(pages[slot >> page_shift]) * n_kv_heads + head;
        const uint place = slot & ((1u << page_shift) - 1);
        if (!KV_Q8) {
            return { ((page << page_shift) + place) * head_dim, 0 };
        }
        const uint n_scales = head_dim / Q8_BLOCK;
        const ulong first = (page << page_shift) * (head_dim + 2 * n_scales);
        return {
            first + place * head_dim,
            (first + (head_dim << page_shift)) / 2 + place * n_scales,
        };
    }
};

template <typename Params>
inline Slots slots_of(device const uint *table, constant Params &params, uint sequence, uint head) {
    return {
        table + ulong(sequence) * params.table_stride, params.page_shift, params.n_kv_heads, head,
        params.head_dim,
    };
}

// Four elements of a slot; `element` is a multiple of four.
inline float4 load_four(device const half *pool, SlotAt at, uint element) {
    if (!KV_Q8) {
        return float4(*(device const half4 *)(pool + at.numbers + element));
    }
    device const char *numbers = (device const char *)pool + at.numbers + element;
    return float4(*(device const char4 *)numbers) * float(pool[at.scales + element / Q8_BLOCK]);
}

// One element of a slot.
inline float load_one(device const half *pool, SlotAt at, uint element) {
    if (!KV_Q8) {
        return float(pool[at.numbers + element]);
    }
    device const char *numbers = (device const char *)pool + at.numbers;
    return float(numbers[element]) * float(pool[at.scales + element / Q8_BLOCK]);
}

// Where the SIMD groups of a threadgroup stand, for work on whole heads.
struct HeadPlace {
    uint simd_group;
    uint n_simd_groups;
    uint lane;
};

// Stores a head in 8 bits: a SIMD group takes a block, a lane an element.
//
//     scale = max |x| / 127 as a half,  q = round(x / scale) within -127 .. 127, or 0 where the scale is 0
//
// All lanes must call it.
template <typename Numbers>
inline void store_q8(device half *pool, SlotAt at, Numbers head, uint head_dim, HeadPlace place) {
    device char *numbers = (device char *)pool + at.numbers;
    for (uint block = place.simd_group; block < head_dim / Q8_BLOCK; block += place.n_simd_groups) {
        const uint element = block * Q8_BLOCK + place.lane;
        const float x = head[element];
        const half scale = half(simd_max(abs(x)) / Q8_LARGEST);
        const float q = scale == 0.0h ? 0.0f : clamp(rint(x / float(scale)), -Q8_LARGEST, Q8_LARGEST);
        numbers[element] = char(q);
        if (place.lane == 0) {
            pool[at.scales + block] = scale;
        }
    }
}
