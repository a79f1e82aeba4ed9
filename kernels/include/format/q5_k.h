// q5_k: as q4_k (groups.h), and a fifth bit of each value.
#pragma once

#include "include/format/groups.h"

struct BlockQ5K {
    typedef block_q5_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 4;
    static constant constexpr bool HAS_OFFSET = true;

    // As q4_k; bit g of byte i of `qh` is the fifth bit of value 32 g + i.
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + nibbles_at(r));
        const uint2 fifth = load_8_bytes(block->qh + r % 4 * 8);
        const uint shift = nibbles_shift(r);
        const uint4 low = byte_fields(bytes.x, shift, 15) | byte_fields(fifth.x, r / 4, 1) << 4;
        const uint4 high = byte_fields(bytes.y, shift, 15) | byte_fields(fifth.y, r / 4, 1) << 4;
        const float2 sm = scale_and_min(block->scales, r / 4);
        return Run{ float4(low), float4(high), float(block->d) * sm.x, -float(block->dmin) * sm.y };
    }
};

typedef FormatBlocks<BlockQ5K> FormatQ5K;

template <>
struct Spans<FormatQ5K> {
    typedef device const uint4 *Row;
    struct Span {
        uint4 head;
        Bytes32 qh;
        Bytes32 qs;
        uint group;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return (Row)(weight + ulong(index) * (at.row_len / 256) * sizeof(block_q5_k));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const R block = row + index / 8 * (sizeof(block_q5_k) / 16);
        const uint group = index % 8;
        return { block[0], Bytes32::load(block + 1), Bytes32::load(block + 3 + group / 2 * 2), group };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = span.qs.run(r) >> (span.group % 2 * 4);
        const uint2 fifth = span.qh.run(r) >> span.group;
        const float2 affine = group_affine(span.head, span.group);
        const uint4 low = byte_fields(bytes.x, 0, 15) | byte_fields(fifth.x, 0, 1) << 4;
        const uint4 high = byte_fields(bytes.y, 0, 15) | byte_fields(fifth.y, 0, 1) << 4;
        return Run{ float4(low), float4(high), affine.x, affine.y };
    }
};
