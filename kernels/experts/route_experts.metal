// route_experts_f32: which experts a row uses, and what their results are weighed by
//
//     p = softmax(l) | sigmoid(l) | l | sqrt(softplus(l));   s = p + bias
//     of the groups only those with the largest sum of their two best s are left
//     ids = the n_used experts of largest s, the first of equal ones;   w = p[ids]
//     w = softmax(w) where p = l;   w = w / max(sum of w, 2^-14) on request;   w = scale * w
//
// A router whose logits are not all finite chooses nothing: its weights are zeros, and the fault becomes the number of its layer,
// counted from 1, unless there was a fault before.
//
// Launch:  a SIMD group for each row.
// Memory:  logits and bias are read once, 4 KB of threadgroup memory.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/activation.h"
#include "include/reduce.h"

using namespace metal;

constant constexpr uint MAX_EXPERTS = 512;
constant constexpr uint LANE_EXPERTS = MAX_EXPERTS / SIMD_WIDTH;
constant constexpr uint MAX_GROUPS = SIMD_WIDTH;
constant constexpr uint NONE = 0xffffffff;
// Sums of weights that are divided by are at least the smallest normal number of 16 bits.
constant constexpr float LEAST_SUM = 6.103515625e-5f;

constant constexpr uint SOFTMAX = 0;
constant constexpr uint SIGMOID = 1;
constant constexpr uint SOFTMAX_OF_CHOSEN = 2;

// p of this lane's logits; those that are not there are -INFINITY.
inline void activate(thread float (&p)[LANE_EXPERTS], uint gating, float largest) {
    if (gating == SOFTMAX) {
        float sum = 0.0f;
        for (uint j = 0; j < LANE_EXPERTS; j++) {
            p[j] = p[j] == -INFINITY ? 0.0f : precise::exp(p[j] - largest);
            sum += p[j];
        }
        sum = simd_sum(sum);
        for (uint j = 0; j < LANE_EXPERTS; j++) {
            p[j] /= sum;
        }
    } else if (gating != SOFTMAX_OF_CHOSEN) {
        for (uint j = 0; j < LANE_EXPERTS; j++) {
            p[j] = gating == SIGMOID ? 1.0f / (1.0f + precise::exp(-p[j])) : sqrt(softplus(max(p[j], -80.0f)));
        }
    }
}

// The weight of lane k is that of the k-th expert; 0 beyond the last one.
inline float final_weight(float p, bool is_used, constant RouteParams &params) {
    float weight = is_used ? p : 0.0f;
    if (params.gating == SOFTMAX_OF_CHOSEN) {
        const float largest = simd_max(is_used ? p : -INFINITY);
        const float power = is_used ? precise::exp(p - largest) : 0.0f;
        weight = power / simd_sum(power);
    }
    if (params.normalise != 0) {
        weight /= max(simd_sum(weight), LEAST_SUM);
    }
    return weight * params.scale;
}

// Leaves the experts of the best groups, and makes the scores of the others -INFINITY. Lane g has group g.
inline void leave_groups(threadgroup float *scores, threadgroup float *of_groups, constant RouteParams &params, uint lane) {
    const uint n_groups = min(params.n_groups, MAX_GROUPS);
    const uint size = min(params.n_experts, MAX_EXPERTS) / n_groups;
    threadgroup float *own = scores + lane * size;
    float sum = 0.0f;
    if (lane < n_groups) {
        float best = -INFINITY;
        float second = -INFINITY;
        for (uint i = 0; i < size; i++) {
            second = max(second, min(best, own[i]));
            best = max(best, own[i]);
        }
        sum = best + second;
        of_groups[lane] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint n_better = 0;
    for (uint g = 0; g < n_groups; g++) {
        n_better += of_groups[g] > sum || (of_groups[g] == sum && g < lane) ? 1 : 0;
    }
    if (lane < n_groups && n_better >= params.n_groups_used) {
        for (uint i = 0; i < size; i++) {
            own[i] = -INFINITY;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void route_experts_f32(
    device const float *logits       [[buffer(0)]],  // (n_rows, n_experts)
    device const float *bias         [[buffer(1)]],  // (n_experts)
    device uint *ids                 [[buffer(2)]],  // (n_rows, n_used)
    device float *weights            [[buffer(3)]],  // (n_rows, n_used)
    device uint *fault               [[buffer(4)]],
    constant RouteParams &params     [[buffer(5)]],
    uint row                         [[threadgroup_position_in_grid]],
    uint lane                        [[thread_index_in_threadgroup]]
) {
    threadgroup float numbers[MAX_EXPERTS];
    threadgroup float scores[MAX_EXPERTS];
    threadgroup float of_groups[MAX_GROUPS];

    const uint n_experts = min(params.n_experts, MAX_EXPERTS);
    device const float *own = logits + ulong(row) * params.n_experts;
    const ulong place = ulong(row) * params.n_used + lane;
    const bool is_used = lane < params.n_used;

    // Lane i has the experts i, i + 32, …
    float p[LANE_EXPERTS];
    float largest = -INFINITY;
    uint is_wrong = 0;
    for (uint j = 0; j < LANE_EXPERTS; j++) {
        const uint expert = j * SIMD_WIDTH + lane;
        p[j] = expert < n_experts ? own[expert] : -INFINITY;
        is_wrong |= expert < n_experts && (as_type<uint>(p[j]) & 0x7f800000u) == 0x7f800000u ? 1 : 0;
        largest = max(largest, p[j]);
    }
    if (simd_max(is_wrong) != 0) {
        if (lane == 0 && fault[0] == 0) {
            fault[0] = params.layer + 1;
        }
        if (is_used) {
            ids[place] = min(lane, n_experts - 1);
            weights[place] = 0.0f;
        }
        return;
    }

    activate(p, params.gating, simd_max(largest));
    for (uint j = 0; j < LANE_EXPERTS; j++) {
        const uint expert = j * SIMD_WIDTH + lane;
        if (expert < n_experts) {
            numbers[expert] = p[j];
            scores[expert] = params.has_bias != 0 ? p[j] + bias[expert] : p[j];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (params.n_groups > 1) {
        leave_groups(scores, of_groups, params, lane);
    }

    uint mine = 0;
    for (uint k = 0; k < params.n_used; k++) {
        float best = -INFINITY;
        uint at = NONE;
        for (uint expert = lane; expert < n_experts; expert += SIMD_WIDTH) {
            if (scores[expert] > best) {
                best = scores[expert];
                at = expert;
            }
        }
        const uint chosen = min(simd_min(best == simd_max(best) ? at : NONE), n_experts - 1);
        if (chosen % SIMD_WIDTH == lane) {
            scores[chosen] = -INFINITY;
        }
        mine = lane == k ? chosen : mine;
    }
    const float weight = final_weight(numbers[mine], is_used, params);
    if (is_used) {
        ids[place] = mine;
        weights[place] = weight;
    }
}
