// q6_k: super-blocks of 256 values in 16 groups of 16. Each half of 128 has 64 bytes of nibbles (value
// i low, value i + 64 high) and 32 bytes of upper bits (values i, i + 32, i + 64, i + 96).
//
// Super-blocks of 210 bytes: rows are aligned to 2 bytes.
#pragma once

#include "include/format/blocks.h"
#include "include/format/span.h"

struct BlockQ6K {
    typedef block_q6_k Block;
    static constant constexpr uint LEN = 256;
    static constant constexpr uint PAIR_GAP = 8;
    static constant constexpr bool HAS_OFFSET = true;

    // d * scale * (q - 32)
    static Run run(device const Block *block, uint r) {
        const uint half_index = r / 16;
        const uint i = r % 16;
        const uint2 lower = load_8_bytes(block->ql + half_index * 64 + i % 8 * 8);
        const uint2 upper = load_8_bytes(block->qh + half_index * 32 + i % 4 * 8);
        const uint shift = i / 8 * 4;
        const uint upper_shift = i / 4 * 2;
        const uint4 low = byte_fields(lower.x, shift, 15) | byte_fields(upper.x, upper_shift, 3) << 4;
        const uint4 high = byte_fields(lower.y, shift, 15) | byte_fields(upper.y, upper_shift, 3) << 4;
        const float d = float(block->d) * float(block->scales[r / 2]);
        return Run{ float4(low), float4(high), d, -32.0f * d };
    }
};

typedef FormatBlocks<BlockQ6K> FormatQ6K;

template <>
struct Spans<FormatQ6K> {
    typedef BlockRow Row;
    struct Span {
        Words<8> ql;
        Words<8> qh;
        uint scales;  // two of 8 bits
        uint d;
        uint group;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return block_row(weight, ulong(index) * (at.row_len / 256), sizeof(block_q6_k));
    }
    template <typename R>
    static Span load(R row, uint index) {
        const uint group = index % 8;
        const uint at = index / 8 * sizeof(block_q6_k);
        return {
            Words<8>::load(row, at + group / 4 * 64 + group % 2 * 32), Words<8>::load(row, at + 128 + group / 4 * 32),
            half_word(row, at + 192 + 2 * group), half_word(row, at + 208), group,
        };
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 lower = two_words(span.ql, r) >> (span.group % 4 / 2 * 4);
        const uint2 upper = two_words(span.qh, r) >> (span.group % 4 * 2);
        const uint4 low = byte_fields(lower.x, 0, 15) | byte_fields(upper.x, 0, 3) << 4;
        const uint4 high = byte_fields(lower.y, 0, 15) | byte_fields(upper.y, 0, 3) << 4;
        const float scale = float(as_type<char4>(span.scales)[r / 2]);
        const float d = half_value(span.d) * scale;
        return Run{ float4(low), float4(high), d, -32.0f * d };
    }
};
