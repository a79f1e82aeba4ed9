// grammar_bitmask_f32: of the rows of logits that have a mask, those whose bit is 0 become -inf, in place
//
// Row i has the mask mask_rows[i], whose bit t % 32 of word t / 32 says whether token t may be chosen. A
// number of no mask leaves the row as it is.
//
// Launch:  one thread a logit (x) of each row (y), threadgroups of 256.
// Memory:  a word of the mask is read by the 32 threads of a SIMD group; only logits that change are
//          touched.

#include <metal_stdlib>

#include "ShaderTypes.h"

using namespace metal;

kernel void grammar_bitmask_f32(
    device float *logits                   [[buffer(0)]],
    device const uint *masks               [[buffer(1)]],
    device const uint *mask_rows           [[buffer(2)]],
    constant GrammarBitmaskParams &params  [[buffer(3)]],
    uint2 index                            [[thread_position_in_grid]]
) {
    const uint token = index.x;
    const uint row = index.y;
    if (token >= params.vocab_size || mask_rows[row] >= params.n_masks) {
        return;
    }
    const uint n_words = (params.vocab_size + 31) / 32;
    device const uint *mask = masks + ulong(mask_rows[row]) * n_words;
    if (((mask[token / 32] >> (token % 32)) & 1u) == 0) {
        logits[ulong(row) * params.vocab_size + token] = -INFINITY;
    }
}
