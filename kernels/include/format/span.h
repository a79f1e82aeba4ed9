// A span: 32 consecutive values of a row, as the registers of one thread hold them before they are decoded.
//
// Runs (run.h) ask for 8 bytes at a time, and where blocks are aligned to 2 bytes only, a GPU without unaligned loads makes
// four loads of that. A span is loaded by whole words: `load` does nothing but loads, so that several spans can be under
// way at once, and `run` then decodes run 0 to 3 of it without a further load.
//
// Weights begin at a multiple of 16 bytes. A format without a specialisation in its header loads run by run.
#pragma once

#include "include/format/run.h"

constant constexpr uint SPAN = 32;
constant constexpr uint SPAN_RUNS = SPAN / RUN;

// Bytes of a span, where spans of a row lie one behind the other and can be staged; 0 elsewhere.
template <typename F>
struct StagedSpan {
    static constant constexpr uint BYTES = 0;
};

template <typename F>
struct Spans {
    typedef typename F::Row Row;
    struct Span {
        Row row;
        uint first_run;
    };

    static Row row(device const uchar *weight, WeightLayout at, uint index) { return F::row(weight, at, index); }
    static Span load(Row row, uint index) { return { row, SPAN_RUNS * index }; }
    static Run run(thread const Span &span, uint r) { return F::run(span.row, span.first_run + r); }
};

// Where the blocks of a row begin, in words that are aligned: in device memory, or in threadgroup memory.
struct BlockRow {
    device const uint *words;  // the word in which the first block begins
    uint odd;                  // whether it begins in that word's upper half

    // Half a word, counted from the first word's lower half.
    uint half_word(uint i) const { return ((device const ushort *)words)[i]; }
};

struct StagedRow {
    threadgroup const uint *words;
    uint odd;

    uint half_word(uint i) const { return ((threadgroup const ushort *)words)[i]; }
};

// The row of a format whose blocks have `bytes` bytes, a multiple of 2.
inline BlockRow block_row(device const uchar *weight, ulong first_block, uint bytes) {
    const ulong at = first_block * bytes;
    return { (device const uint *)(weight + (at & ~3ul)), uint(at / 2 & 1) };
}

// N words from byte `at` of a row on, a multiple of 2. Nothing beside them is read but the half of a word before them.
template <uint N>
struct Words {
    uint word[N];

    template <typename R>
    static Words<N> load(R row, uint at) {
        const uint begin = at + 2 * row.odd;
        const bool odd = begin % 4 != 0;
        const auto from = row.words + begin / 4;
        uint words[N + 1];
#pragma unroll
        for (uint i = 0; i < N; i++) {
            words[i] = from[i];
        }
        // The upper half of the last word where the words lie across; otherwise nothing new.
        words[N] = odd ? row.half_word(2 * (begin / 4 + N)) : 0;
        Words<N> out;
#pragma unroll
        for (uint i = 0; i < N; i++) {
            out.word[i] = odd ? words[i] >> 16 | words[i + 1] << 16 : words[i];
        }
        return out;
    }
};

// Two bytes of a row.
template <typename R>
inline uint half_word(R row, uint at) { return row.half_word(at / 2 + row.odd); }

inline float half_value(uint bits) { return float(as_type<half>(ushort(bits))); }

// Words 2 r and 2 r + 1 of a span of bytes.
template <uint N>
inline uint2 two_words(thread const Words<N> &words, uint r) {
    return uint2(words.word[2 * r], words.word[2 * r + 1]);
}
