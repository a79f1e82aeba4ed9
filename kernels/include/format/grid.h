// Codes of four or eight values at once: a place in a grid of points, of which not every combination of magnitudes is one.
//
// A point is packed into 16 bits: four levels of 3 bits, or eight of 2. Here each value becomes a byte, as of codes of 4 bits that
// are places in a table of 16 numbers (numbers.h): the level, and 8 where the number is negative.
#pragma once

#include "include/format/blocks.h"
#include "include/format/grids.h"
#include "include/format/numbers.h"
#include "include/format/span.h"

// Four levels of 3 bits as bytes.
inline uint four_levels(uint point) {
    return (point & 7) | (point & 0x38) << 5 | (point & 0x1c0) << 10 | (point & 0xe00) << 15;
}

// Eight levels of 2 bits as bytes.
inline uint2 eight_levels(uint point) {
    const uint2 levels = uint2(point & 0xff, point >> 8);
    return (levels & 3u) | (levels & 0xcu) << 6 | (levels & 0x30u) << 12 | (levels & 0xc0u) << 18;
}

// Eight bits, each as the 8 in a byte.
inline uint2 eight_signs(uint bits) {
    const uint2 four = uint2(bits & 15, bits >> 4 & 15);
    return (four & 1u) << 3 | (four & 2u) << 10 | (four & 4u) << 17 | (four & 8u) << 24;
}

// The signs of eight values of which the lowest seven are stored: an even number are negative.
inline uint even_signs(uint bits) {
    const uint seven = bits & 127;
    return seven | (popcount(seven) & 1) << 7;
}

// 32 bits at an even address.
inline uint two_words(device const uint16_t *words) { return uint(words[0]) | uint(words[1]) << 16; }

inline Run run_of_codes(constant int8_t *table, uint2 codes, float scale) {
    return Run{ numbers(table, codes.x), numbers(table, codes.y), scale, 0.0f };
}
