// Which keys a row sees.
//
// An active row sees
//   * the slots 0 .. length of its sequence;
//   * of a sliding window, only the last WINDOW of those.
// An idle row sees nothing.
#pragma once

#include <metal_stdlib>

#include "include/attention_constants.h"
#include "include/row_table.h"

using namespace metal;

struct RowMask {
    uint begin;       // the first slot that the row sees
    uint end;         // one after the last

    bool visible(uint slot) const { return slot >= begin && slot < end; }
};

inline RowMask row_mask(device const Row &row) {
    const uint end = is_active(row) ? row.length : 0;
    const uint begin = WINDOW != 0 && end > WINDOW ? end - WINDOW : 0;
    return { begin, end };
}
