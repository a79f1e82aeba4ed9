// Which keys a query sees.
//
// Query q has position kv_seq_len - seq_len + q. It sees
//   * keys up to its own position, or all keys when not causal;
//   * of a sliding window, only the last WINDOW of those (causal attention only);
//   * only keys that are still in the cache: the last n_slots;
//   * of the seq_len newest keys (the drafts of a speculation), only those in its tree mask.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/attention_constants.h"

using namespace metal;

// Bits of a tree mask: the most drafts that can be verified at once.
constant constexpr uint MAX_DRAFTS = 16;

struct QueryMask {
    uint begin;        // the first key in range
    uint end;          // one after the last
    uint first_draft;  // where the newest seq_len keys begin
    uint tree;         // bit i: the query sees draft i

    bool visible(uint key) const {
        const bool in_range = key >= begin && key < end;
        if (!HAS_TREE_MASK || key < first_draft) {
            return in_range;
        }
        const uint draft = key - first_draft;
        return in_range && draft < MAX_DRAFTS && ((tree >> draft) & 1) != 0;
    }
};

inline QueryMask query_mask(
    constant AttentionParams &params, uint n_slots, uint query, device const ushort *tree_mask
) {
    const uint n_keys = params.kv_seq_len;
    QueryMask mask;
    mask.begin = n_keys > n_slots ? n_keys - n_slots : 0;
    mask.end = n_keys;
    if (IS_CAUSAL) {
        // Counts are below 2^31: a query before the first key has end 0 and sees nothing.
        const int end = int(n_keys) - int(params.seq_len) + int(query) + 1;
        mask.end = uint(clamp(end, 0, int(n_keys)));
        if (WINDOW != 0 && mask.end > WINDOW) {
            mask.begin = max(mask.begin, mask.end - WINDOW);
        }
    }
    mask.first_draft = n_keys - min(params.seq_len, n_keys);
    mask.tree = HAS_TREE_MASK ? tree_mask[query] : 0;
    return mask;
}
