// Rows that begin at any byte, loaded in whole words that are shifted into place.
#pragma once

#include "include/format/run.h"

// Bytes from `first` on, in words.
struct ByteStream {
    device const uint *words;
    uint first;  // 0 to 3
};

inline ByteStream byte_stream(device const uchar *binding, ulong at) {
    return ByteStream{ (device const uint *)(binding + (at & ~3ul)), uint(at & 3) };
}

// The upper word begins where the lower one ends: 32 bits from bit `shift` of the lower one on, a shift of 0 to 24.
inline uint join_words(uint low, uint high, uint shift) { return low >> shift | high << (31 - shift) << 1; }
