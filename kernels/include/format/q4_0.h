// q4_0: 32 values; byte j of `qs` holds value j (low nibble) and value j + 16 (high nibble).
//
// Blocks of 18 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"
#include "include/format/span.h"

struct BlockQ4_0 {
    typedef block_q4_0 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = true;

    // d * (q - 8) = 16 d * (1 + q / 16) - 24 d, exactly: each of these numbers has few bits.
    static Run run(device const Block *block, uint r) {
        const float d = block->d;
        const uint2 bytes = load_8_bytes(block->qs + 8 * (r % 2)) >> (4 * (r / 2));
        return Run{ one_and_sixteenths(bytes.x), one_and_sixteenths(bytes.y), 16.0f * d, -24.0f * d };
    }
};

typedef FormatBlocks<BlockQ4_0> FormatQ4_0;

template <>
struct StagedSpan<FormatQ4_0> {
    static constant constexpr uint BYTES = sizeof(block_q4_0);
};

template <>
struct Spans<FormatQ4_0> {
    typedef BlockRow Row;
    struct Span {
        uint d;
        Words<4> qs;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / SPAN), sizeof(block_q4_0));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const uint at = index * sizeof(block_q4_0);
        return { half_word(row, at), Words<4>::load(row, at + 2) };
    }
    // As BlockQ4_0::run.
    static Run run(thread const Span &span, uint r) {
        const float d = half_value(span.d);
        const uint2 bytes = two_words(span.qs, r % 2) >> (4 * (r / 2));
        return Run{ one_and_sixteenths(bytes.x), one_and_sixteenths(bytes.y), 16.0f * d, -24.0f * d };
    }
};
