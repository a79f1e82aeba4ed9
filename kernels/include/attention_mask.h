// Which keys a row sees.
//
// An active row sees
//   * the slots 0 .. length of its sequence;
//   * of a sliding window, only the last WINDOW of those;
//   * of the slots from tree_first on (the drafts of a speculation), only tree_first + i with bit i of its
//     tree mask.
// An idle row sees nothing.
#pragma once

#include <metal_stdlib>

#include "include/attention_constants.h"
#include "include/row_table.h"

using namespace metal;

// Bits of a tree mask: the most drafts that can be verified at once.
constant constexpr uint MAX_DRAFTS = 32;

struct RowMask {
    uint begin;       // the first slot in range
    uint end;         // one after the last
    uint tree_first;  // the first slot that the tree mask speaks of
    uint tree;        // bit i: the row sees slot tree_first + i

    bool visible(uint slot) const {
        const bool in_range = slot >= begin && slot < end;
        if (!HAS_TREE_MASK || slot < tree_first) {
            return in_range;
        }
        const uint draft = slot - tree_first;
        return in_range && draft < MAX_DRAFTS && ((tree >> draft) & 1) != 0;
    }
};

inline RowMask row_mask(device const Row &row) {
    const uint end = is_active(row) ? row.length : 0;
    const uint begin = WINDOW != 0 && end > WINDOW ? end - WINDOW : 0;
    return { begin, end, row.tree_first, row.tree_mask };
}
