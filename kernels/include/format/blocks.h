// GGUF's quantised blocks: a row is a sequence of blocks, each with its own scales.
//
// B describes one block: its struct, PAIR_GAP and HAS_OFFSET (see run.h), and `run(block, r)`.
#pragma once

#include "include/format/run.h"

template <typename B>
struct FormatBlocks {
    typedef device const typename B::Block *Row;
    static constant constexpr uint BLOCK = B::LEN;
    static constant constexpr uint PAIR_GAP = B::PAIR_GAP;
    static constant constexpr bool HAS_OFFSET = B::HAS_OFFSET;

    static Row row(device const uchar *weight, WeightLayout at, uint index) {
        return (Row)weight + ulong(index) * (at.row_len / BLOCK);
    }
    static Run run(Row row, uint index) {
        return B::run(row + index / (BLOCK / RUN), index % (BLOCK / RUN));
    }
    static float value(Row, uint) { return 0.0f; }  // rows end with a block
};
