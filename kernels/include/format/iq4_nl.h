// iq4_nl: nibbles as in q4_0; a nibble is a place in a table of numbers.
//
// Blocks of 18 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"
#include "include/format/numbers.h"
#include "include/format/span.h"

struct BlockIQ4NL {
    typedef block_iq4_nl Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = false;

    // d * numbers[q]
    static Run run(device const Block *block, uint r) {
        const uint2 bytes = load_8_bytes(block->qs + 8 * (r % 2)) >> (4 * (r / 2));
        return Run{ numbers(IQ4_NL_NUMBERS, bytes.x), numbers(IQ4_NL_NUMBERS, bytes.y), block->d, 0.0f };
    }
};

typedef FormatBlocks<BlockIQ4NL> FormatIQ4NL;

template <>
struct StagedSpan<FormatIQ4NL> {
    static constant constexpr uint BYTES = sizeof(block_iq4_nl);
};

template <>
struct Spans<FormatIQ4NL> {
    typedef BlockRow Row;
    struct Span {
        uint d;
        Words<4> qs;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / SPAN), sizeof(block_iq4_nl));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const uint at = index * sizeof(block_iq4_nl);
        return { half_word(row, at), Words<4>::load(row, at + 2) };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = two_words(span.qs, r % 2) >> (4 * (r / 2));
        return Run{ numbers(IQ4_NL_NUMBERS, bytes.x), numbers(IQ4_NL_NUMBERS, bytes.y), half_value(span.d), 0.0f };
    }
};
