// Codes of 4 bits that are places in a table of 16 numbers.
#pragma once

#include "include/format/run.h"

// The numbers of the low nibbles of four bytes.
inline float4 numbers(constant int8_t *table, uint bytes) {
    const uint4 q = byte_fields(bytes, 0, 15);
    return float4(float(table[q.x]), float(table[q.y]), float(table[q.z]), float(table[q.w]));
}
