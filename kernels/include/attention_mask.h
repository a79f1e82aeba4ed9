// Which keys a row sees.
//
// An active row sees
//   * the slots 0 .. length of its sequence, but for those of other branches of its tree, which are among the last 31;
//   * of a sliding window, only the last WINDOW of those up to its own slot. A window begins before all slots that are hidden.
// The rows of an image may see slots behind their own, up to the end of the image.
// An idle row sees nothing. What is hidden holds numbers: it may be read, and counts nothing.
#pragma once

#include <metal_stdlib>

#include "include/attention_constants.h"
#include "include/row_table.h"

using namespace metal;

struct RowMask {
    uint begin;       // the first slot that the row sees
    uint end;         // one after the last
    uint hidden;      // bit i: slot end - 1 - i is of another branch; bit 31 is 0

    bool visible(uint slot) const {
        const bool is_hidden = ((hidden >> min(end - 1 - slot, 31u)) & 1) != 0;
        return slot >= begin && slot < end && !is_hidden;
    }
};

inline RowMask row_mask(device const Row &row) {
    const uint end = is_active(row) ? row.length : 0;
    const uint hidden = is_active(row) ? row.hidden : 0;
    const uint n_before = min(end, row.slot + 1) - popcount(hidden);
    const uint begin = WINDOW != 0 && n_before > WINDOW ? n_before - WINDOW : 0;
    return { begin, end, hidden };
}
