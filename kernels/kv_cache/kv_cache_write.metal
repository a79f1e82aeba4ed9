// kv_cache_write_f16: rows of k or v, as halves, to their slots of a cache.
//
//     cache[head][(pos + r) % max_seq_len][d] = src[r][head][d]
//
// Of more rows than slots the last ones stay.
//
// Launch:  one thread an element, 256 a threadgroup; x walks the elements of a row, y the rows.
// Memory:  each element is read once and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/rope.h"

using namespace metal;

kernel void kv_cache_write_f16(
    device const float *src                [[buffer(0)]],
    device half *cache                     [[buffer(1)]],
    constant KVCacheWriteParams &params    [[buffer(2)]],
    uint2 at                               [[thread_position_in_grid]]
) {
    const uint head_dim = params.head_dim;
    const uint row = at.y;
    const uint head = at.x / head_dim;
    if (head >= params.n_kv_heads || row >= params.seq_len) {
        return;
    }
    if (params.seq_len - row > params.max_seq_len) {
        return;
    }
    const uint stride = params.src_stride == 0 ? params.n_kv_heads * head_dim : params.src_stride;
    const ulong slot = cache_row(head, params.pos + row, params.max_seq_len, head_dim);
    cache[slot + at.x % head_dim] = half(src[ulong(row) * stride + at.x]);
}
