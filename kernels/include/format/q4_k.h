// q4_k: 8 groups of 32 nibbles, with a scale and a minimum each (groups.h).
#pragma once

#include "include/format/groups.h"

struct BlockQ4K {
    typedef block_q4_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 4;
    static constant constexpr bool HAS_OFFSET = true;

    // d * scale * q - dmin * min
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + nibbles_at(r));
        const uint shift = nibbles_shift(r);
        const float2 sm = scale_and_min(block->scales, r / 4);
        return Run{
            float4(byte_fields(bytes.x, shift, 15)), float4(byte_fields(bytes.y, shift, 15)),
            float(block->d) * sm.x, -float(block->dmin) * sm.y,
        };
    }
};

typedef FormatBlocks<BlockQ4K> FormatQ4K;

template <>
struct Spans<FormatQ4K> {
    typedef device const uint4 *Row;
    struct Span {
        uint4 head;
        Bytes32 qs;
        uint group;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return (Row)(weight + ulong(index) * (at.row_len / 256) * sizeof(block_q4_k));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const R block = row + index / 8 * (sizeof(block_q4_k) / 16);
        const uint group = index % 8;
        return { block[0], Bytes32::load(block + 1 + group / 2 * 2), group };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = span.qs.run(r) >> (span.group % 2 * 4);
        const float2 affine = group_affine(span.head, span.group);
        // 16 s * (1 + q / 16) + (m - 16 s)
        const float scale = 16.0f * affine.x;
        return Run{ one_and_sixteenths(bytes.x), one_and_sixteenths(bytes.y), scale, affine.y - scale };
    }
};
