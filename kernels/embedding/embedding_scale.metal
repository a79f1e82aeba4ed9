// embedding_scale_f32: x[i] *= factor, in place
//
// Gemma multiplies its embeddings by the square root of their dimension.
//
// Launch:  one thread for four elements, threadgroups of 256.
// Memory:  x is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/elementwise.h"

using namespace metal;

struct Scale {
    float factor;

    template <typename T>
    T apply(T x) const {
        return x * factor;
    }
};

kernel void embedding_scale_f32(
    device float *x                        [[buffer(0)]],
    constant EmbeddingScaleParams &params  [[buffer(1)]],
    uint index                             [[thread_position_in_grid]]
) {
    map_one(x, params.count, index, Scale{params.factor});
}
