// Rotary position embedding: pair d of a head turns by
//
//     angle = position * freq_scale / divisor[d],    divisor[d] = theta ^ (2d / turned_dim)
//
// and where only the first turned_dim elements of a head turn, the divisors of the other pairs are infinite.
//
// The divisors come from a table when one is bound. The host computes it in double precision and
// multiplies the scaling factors of the model into it, so that the kernels only divide. At position
// 131072 the last bit of a float angle is 1/128 of a radian: sine and cosine must at least reduce that
// angle exactly, which is what `precise::` asks for.
#pragma once

#include <metal_stdlib>

#include "include/rope_constants.h"

using namespace metal;

// Which two elements of a head make pair d. Those that do not turn are pairs of neighbours.
struct Interleaved {
    static uint first(uint pair, uint) { return 2 * pair; }
    static uint second(uint pair, uint) { return 2 * pair + 1; }
};
struct SplitHalves {
    static bool turns(uint pair, uint head_dim) { return !HAS_TURNED_DIM || pair < turned_dim(head_dim) / 2; }
    static uint first(uint pair, uint head_dim) { return turns(pair, head_dim) ? pair : 2 * pair; }
    static uint second(uint pair, uint head_dim) {
        return turns(pair, head_dim) ? pair + turned_dim(head_dim) / 2 : 2 * pair + 1;
    }
};

struct Rotation {
    float cosine;
    float sine;

    float2 apply(float2 x) const {
        return float2(x.x * cosine - x.y * sine, x.x * sine + x.y * cosine);
    }
};

// The frequencies of a model: how fast each pair turns.
struct Frequencies {
    device const float *table;  // (head_dim / 2), read only when FC_FREQ_TABLE is set
    float theta;
    float scale;
    uint head_dim;

    Rotation at(float position, uint pair) const {
        const uint turned = turned_dim(head_dim);
        const float divisor = HAS_FREQ_TABLE ? table[pair]
            : 2 * pair < turned              ? precise::pow(theta, float(2 * pair) / float(turned))
                                             : INFINITY;
        const float angle = position * scale / divisor;
        return { precise::cos(angle), precise::sin(angle) };
    }
};
