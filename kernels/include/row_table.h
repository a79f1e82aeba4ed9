// The rows of a step: one for each token, in device memory.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

// The flag of a row that takes part. An idle row names nothing that may be looked at.
constant constexpr uint ROW_ACTIVE = 1;
// The flag of a row that is of the second text of a pair.
constant constexpr uint ROW_SECOND = 4;
// The flag of a row of an image.
constant constexpr uint ROW_IMAGE = 8;

inline bool is_active(device const Row &row) {
    return (row.flags & ROW_ACTIVE) != 0;
}

inline bool is_of_image(device const Row &row) {
    return is_active(row) && (row.flags & ROW_IMAGE) != 0;
}
