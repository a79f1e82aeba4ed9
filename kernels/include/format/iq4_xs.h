// iq4_xs: super-blocks of 8 groups of 32 nibbles, which are places in the table of iq4_nl. Nibbles of a group as in q4_0; a group has
// a scale of 6 bits.
//
// Super-blocks of 136 bytes: rows are aligned to 2 bytes, and to 8 where weights begin at a multiple of 8.
#pragma once

#include "include/format/blocks.h"
#include "include/format/numbers.h"
#include "include/format/span.h"

struct BlockIQ4XS {
    typedef block_iq4_xs Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = false;

    // d * (scale - 32) * numbers[q]
    static Run run(device const Block *block, uint r) {
        const uint group = r / 4;
        const uint2 bytes = load_8_bytes(block->qs + group * 16 + r % 2 * 8) >> (4 * (r % 4 / 2));
        const uint low = uint(block->scales_l[group / 2]) >> (group % 2 * 4) & 15;
        const uint high = uint(block->scales_h[group / 4]) >> (group % 4 * 2) & 3;
        const float d = float(block->d) * (float(low | high << 4) - 32.0f);
        return Run{ numbers(IQ4_XS_NUMBERS, bytes.x), numbers(IQ4_XS_NUMBERS, bytes.y), d, 0.0f };
    }
};

typedef FormatBlocks<BlockIQ4XS> FormatIQ4XS;

template <>
struct Spans<FormatIQ4XS> {
    typedef device const uint2 *Row;
    struct Span {
        uint2 head;  // d, high bits of the scales, low bits
        uint2 qs[2];
        uint group;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return (Row)(weight + ulong(index) * (at.row_len / 256) * sizeof(block_iq4_xs));
    }
    static Span load(Row row, uint index) {
        const Row block = row + index / 8 * (sizeof(block_iq4_xs) / 8);
        const uint group = index % 8;
        return { block[0], { block[1 + 2 * group], block[2 + 2 * group] }, group };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = span.qs[r % 2] >> (4 * (r / 2));
        const uint scale = (span.head.y >> (4 * span.group) & 15) | (span.head.x >> (16 + 2 * span.group) & 3) << 4;
        const float d = half_value(span.head.x & 0xffff) * (float(scale) - 32.0f);
        return Run{ numbers(IQ4_XS_NUMBERS, bytes.x), numbers(IQ4_XS_NUMBERS, bytes.y), d, 0.0f };
    }
};
