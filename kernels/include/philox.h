// Philox 4x32-10: random bits as a pure function of a counter and a key.
//
// The noise of a token depends on the seed, the position and the token alone: no state is carried
// from one launch to the next, and every executor gets the same bits.
#pragma once

#include <metal_stdlib>

using namespace metal;

inline uint4 philox(uint4 counter, uint2 key) {
    for (uint round = 0; round < 10; ++round) {
        const uint high0 = mulhi(0xD2511F53u, counter.x);
        const uint low0 = 0xD2511F53u * counter.x;
        const uint high1 = mulhi(0xCD9E8D57u, counter.z);
        const uint low1 = 0xCD9E8D57u * counter.z;
        counter = uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uint2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

// A float strictly between 0 and 1.
inline float open_unit(uint bits) {
    return min((float(bits) + 0.5f) * 0x1p-32f, 0x1.fffffep-1f);
}

// Gumbel noise: -log(e) where e = -log(1 - u) is exponential. A logarithm near 1 would lose the digits of a small u,
// which are those of the largest noise: there it is a series.
inline float gumbel(uint bits) {
    const float u = open_unit(bits);
    const float e = u < 0x1p-8f ? u * (1.0f + u * (0.5f + u * 0x1.555556p-2f)) : -precise::log(1.0f - u);
    return -precise::log(e);
}
