// mxfp4: nibbles as in q4_0, which are places in a table of 4-bit floats, doubled; the scale is a power of two.
//
// Blocks of 17 bytes: they begin at any byte.
#pragma once

#include "include/format/blocks.h"
#include "include/format/byte_stream.h"
#include "include/format/numbers.h"
#include "include/format/span.h"

// 2^(e - 128). Below 2^-126 that is a single bit of the fraction.
inline float half_of_power(uint e) {
    return as_type<float>(max(int(e << 23) - (1 << 23), int((e + 1) << 21)));
}

// 4 bytes at any address.
inline uint load_4_bytes(device const uchar *bytes) {
    return as_type<uint>(uchar4(*(device const packed_uchar4 *)bytes));
}

struct BlockMXFP4 {
    typedef block_mxfp4 Block;
    static constant constexpr uint LEN = 32;
    static constant constexpr uint PAIR_GAP = 2;
    static constant constexpr bool HAS_OFFSET = false;

    // scale / 2 * numbers[q]
    static Run run(device const Block *block, uint r) {
        device const uchar *qs = block->qs + 8 * (r % 2);
        const uint2 bytes = uint2(load_4_bytes(qs), load_4_bytes(qs + 4)) >> (4 * (r / 2));
        return Run{ numbers(MXFP4_NUMBERS, bytes.x), numbers(MXFP4_NUMBERS, bytes.y), half_of_power(block->e), 0.0f };
    }
};

typedef FormatBlocks<BlockMXFP4> FormatMXFP4;

template <>
struct Spans<FormatMXFP4> {
    struct Row {
        ByteStream bytes;
        bool ends_with_word;  // the matrix does: no word holds a byte behind it
    };
    struct Span {
        uint e;
        uint qs[4];
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        const ulong n_blocks = at.row_len / SPAN;
        const bool ends_with_word = at.n_rows * n_blocks % 4 == 0;
        return { byte_stream(weight, index * n_blocks * sizeof(block_mxfp4)), ends_with_word };
    }
    // A block lies in five words, of which the last has one to four bytes of it.
    static Span load(Row row, uint index) {
        const uint at = row.bytes.first + index * sizeof(block_mxfp4);
        const uint shift = at % 4 * 8;
        device const uint *from = row.bytes.words + at / 4;
        const uint words[5] = { from[0], from[1], from[2], from[3], row.ends_with_word ? from[4] : last_word(from + 4, at % 4) };
        Span span;
        span.e = words[0] >> shift & 255;
#pragma unroll
        for (uint i = 0; i < 4; i++) {
            // 32 bits from bit shift + 8 on, which is the next word where that is 32.
            span.qs[i] = uint((ulong(words[i + 1]) << 32 | words[i]) >> (shift + 8));
        }
        return span;
    }
    static Run run(thread const Span &span, uint r) {
        const uint2 bytes = uint2(span.qs[r % 2 * 2], span.qs[r % 2 * 2 + 1]) >> (4 * (r / 2));
        return Run{ numbers(MXFP4_NUMBERS, bytes.x), numbers(MXFP4_NUMBERS, bytes.y), half_of_power(span.e), 0.0f };
    }

private:
    // Bytes 0 to `last` of a word.
    static uint last_word(device const uint *word, uint last) {
        device const uchar *bytes = (device const uchar *)word;
        uint value = 0;
        for (uint i = 0; i <= last; i++) {
            value |= uint(bytes[i]) << (8 * i);
        }
        return value;
    }
};
