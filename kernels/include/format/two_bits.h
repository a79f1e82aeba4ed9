// The low two bits of q2_k and q3_k: byte i of each half's 32 bytes of `qs` holds two bits of the values i, i + 32, i + 64 and
// i + 96 of that half.
#pragma once

#include "include/format/blocks.h"

// Where the low two bits of run r of 32 lie.
inline uint two_bits_at(uint r) { return r / 16 * 32 + r % 4 * 8; }
inline uint two_bits_shift(uint r) { return r % 16 / 4 * 2; }
