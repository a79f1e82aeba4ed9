// Element-wise kernels: a thread takes four neighbouring elements, as one float4 where all four
// exist. Bindings start at a multiple of 16 bytes, so that the vectors are aligned.
//
// An Op has `T apply(T a)` or `T apply(T a, T b)` for T = float and T = float4.
#pragma once

#include <metal_stdlib>

using namespace metal;

// y[i] = op(a[i], b[i]); y may be a or b.
template <typename Op>
inline void map_two(
    device const float *a, device const float *b, device float *y, uint count, uint index
) {
    const uint first = 4 * index;
    if (first + 4 <= count) {
        const float4 left = *(device const float4 *)(a + first);
        const float4 right = *(device const float4 *)(b + first);
        *(device float4 *)(y + first) = Op::apply(left, right);
    } else {
        for (uint i = first; i < count; ++i) {
            y[i] = Op::apply(a[i], b[i]);
        }
    }
}

// x[i] = op(x[i])
template <typename Op>
inline void map_one(device float *x, uint count, uint index, Op op) {
    const uint first = 4 * index;
    if (first + 4 <= count) {
        device float4 *vector = (device float4 *)(x + first);
        *vector = op.apply(*vector);
    } else {
        for (uint i = first; i < count; ++i) {
            x[i] = op.apply(x[i]);
        }
    }
}
