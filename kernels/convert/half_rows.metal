// half_rows_f32:       y[r][i] = x[r][i] / factor[r], as halves, zeros behind the elements of a row.
// norm_half_rows_f32:  the same of x[r][i] / sqrt(mean(x[r]^2) + eps) * gain[i]
// silu_half_rows_f32:  the same of silu(gate[r][i]) * up[r][i]
// gelu_half_rows_f32:  the same of gelu(gate[r][i]) * up[r][i], the tanh form
//
// factor[r] is the largest power of two up to the largest element of the row, at least 2^-100: the division is exact before it is
// rounded to a half.
//
// How rows lie, one behind the other or in tiles: include/half_tile.h.
//
// Launch:  one threadgroup for each row.
// Memory:  a row is read once: up to 16 elements of a thread stay in its registers. What is longer, and rows that are not whole
//          vectors, are read twice, the second time from cache.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/half_tile.h"
#include "include/reduce.h"
#include "include/row.h"

using namespace metal;

// The bits of 2^-100 and, as what two powers of two with product 1 add up to, of 2^127.
constant constexpr uint LEAST_FACTOR = 27u << 23;
constant constexpr uint INVERSE_SUM = 254u << 23;

// Vectors of four elements that a thread keeps.
constant constexpr uint KEPT = 4;

// The elements of a row, one or four of them, and the squares of what is normalised. `load` does nothing but loads.
struct PlainRow {
    static constant constexpr bool IS_NORMED = false;
    struct Four {
        float4 x;
    };
    device const float *x;

    Four load(uint i) const { return { ((device const float4 *)x)[i] }; }
    float4 four(Four loaded, thread float &) const { return loaded.x; }
    float one(uint i, thread float &) const { return x[i]; }
};

// Before they are divided by the root of the mean square.
struct GainedRow {
    static constant constexpr bool IS_NORMED = true;
    struct Four {
        float4 x;
        float4 gain;
    };
    device const float *x;
    device const float *gain;

    Four load(uint i) const { return { ((device const float4 *)x)[i], ((device const float4 *)gain)[i] }; }
    float4 four(Four loaded, thread float &squares) const {
        squares += dot(loaded.x, loaded.x);
        return loaded.x * loaded.gain;
    }
    float one(uint i, thread float &squares) const {
        squares += x[i] * x[i];
        return x[i] * gain[i];
    }
};

// An activation of a gate, times what it lets through.
template <typename Activation>
struct GatedRow {
    static constant constexpr bool IS_NORMED = false;
    struct Four {
        float4 gate;
        float4 up;
    };
    device const float *gate;
    device const float *up;

    Four load(uint i) const { return { ((device const float4 *)gate)[i], ((device const float4 *)up)[i] }; }
    float4 four(Four loaded, thread float &) const { return Activation::of(loaded.gate) * loaded.up; }
    float one(uint i, thread float &) const { return Activation::of(gate[i]) * up[i]; }
};

// x * sigmoid(u), off by some units in the last place of a float, of which a half keeps 13 bits less. A division that rounds right has
// branches, and nothing is loaded ahead of a branch.
template <typename T>
inline T gated(T x, T u) {
    return fast::divide(x, 1.0f + precise::exp(-u));
}

// As act_silu.
struct Silu {
    template <typename T>
    static T of(T x) {
        return gated(x, x);
    }
};

// As act_gelu.
struct Gelu {
    template <typename T>
    static T of(T x) {
        return gated(x, 1.5957691216f * x * (1.0f + 0.044715f * x * x));
    }
};

// Where a thread is.
struct HalvingPlace {
    uint row;
    uint thread_index;
    uint n_threads;
    SimdPlace in_simd;
};

inline float largest_of(float4 v) { return max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))); }

// The halves of a row. All threads must call it.
template <typename Source>
inline void halve_row(
    Source from, device half *y, device float *factor, constant HalfRowsParams &params, threadgroup float2 *shared, HalvingPlace at
) {
    const bool in_tiles = params.order != IN_ROWS;
    const uint in_tile = at.row % 8;
    device half *to = y + ulong(in_tiles ? at.row - in_tile : at.row) * params.stride;
    const bool in_vectors = params.cols % 4 == 0 && params.stride % 4 == 0;
    const uint n_vectors = params.cols / 4;
    float4 kept[KEPT];
    float largest = 0.0f;
    float squares = 0.0f;
    if (in_vectors) {
        typename Source::Four loaded[KEPT];
#pragma unroll
        for (uint j = 0; j < KEPT; j++) {
            const uint i = at.thread_index + j * at.n_threads;
            if (i < n_vectors) {
                loaded[j] = from.load(i);
            }
        }
#pragma unroll
        for (uint j = 0; j < KEPT; j++) {
            const uint i = at.thread_index + j * at.n_threads;
            kept[j] = i < n_vectors ? from.four(loaded[j], squares) : float4(0.0f);
            largest = max(largest, largest_of(kept[j]));
        }
        for (uint i = at.thread_index + KEPT * at.n_threads; i < n_vectors; i += at.n_threads) {
            largest = max(largest, largest_of(from.four(from.load(i), squares)));
        }
    } else {
        for (uint i = at.thread_index; i < params.cols; i += at.n_threads) {
            largest = max(largest, abs(from.one(i, squares)));
        }
    }
    const float2 of_row = threadgroup_sum_and_max<Source::IS_NORMED>(squares, largest, shared, at.in_simd);
    const float scale = Source::IS_NORMED ? inverse_rms(of_row.x, params.cols, params.eps) : 1.0f;
    largest = scale * of_row.y;
    const uint bits = max(as_type<uint>(largest) & 0x7f800000u, LEAST_FACTOR);
    const float inverse = as_type<float>(INVERSE_SUM - bits);
    if (at.thread_index == 0) {
        factor[at.row] = as_type<float>(bits);
    }
    if (in_vectors) {
#pragma unroll
        for (uint j = 0; j < KEPT; j++) {
            const uint i = at.thread_index + j * at.n_threads;
            if (i < params.stride / 4) {
                store_four(to, half4(kept[j] * scale * inverse), in_tile, i, params.order);
            }
        }
        for (uint i = at.thread_index + KEPT * at.n_threads; i < params.stride / 4; i += at.n_threads) {
            const float4 v = i < n_vectors ? from.four(from.load(i), squares) : float4(0.0f);
            store_four(to, half4(v * scale * inverse), in_tile, i, params.order);
        }
    } else {
        for (uint i = at.thread_index; i < params.stride; i += at.n_threads) {
            const uint place = in_tiles ? place_in_tile(in_tile, i - i % 2, params.order) + i % 2 : i;
            to[place] = i < params.cols ? half(from.one(i, squares) * scale * inverse) : 0.0h;
        }
    }
}

kernel void half_rows_f32(
    device const float *x              [[buffer(0)]],  // (rows, cols)
    device half *y                     [[buffer(1)]],  // (rows, stride)
    device float *factor               [[buffer(2)]],  // (rows)
    constant HalfRowsParams &params    [[buffer(3)]],
    uint row                           [[threadgroup_position_in_grid]],
    uint thread_index                  [[thread_index_in_threadgroup]],
    uint n_threads                     [[threads_per_threadgroup]],
    uint simd_group                    [[simdgroup_index_in_threadgroup]],
    uint lane                          [[thread_index_in_simdgroup]],
    uint n_simd_groups                 [[simdgroups_per_threadgroup]]
) {
    threadgroup float2 shared[MAX_SIMD_GROUPS];
    const PlainRow from = { x + ulong(row) * params.cols };
    const HalvingPlace at = { row, thread_index, n_threads, { simd_group, lane, n_simd_groups } };
    halve_row(from, y, factor, params, shared, at);
}

kernel void norm_half_rows_f32(
    device const float *x              [[buffer(0)]],  // (rows, cols)
    device const float *gain           [[buffer(1)]],  // (cols)
    device half *y                     [[buffer(2)]],  // (rows, stride)
    device float *factor               [[buffer(3)]],  // (rows)
    constant HalfRowsParams &params    [[buffer(4)]],
    uint row                           [[threadgroup_position_in_grid]],
    uint thread_index                  [[thread_index_in_threadgroup]],
    uint n_threads                     [[threads_per_threadgroup]],
    uint simd_group                    [[simdgroup_index_in_threadgroup]],
    uint lane                          [[thread_index_in_simdgroup]],
    uint n_simd_groups                 [[simdgroups_per_threadgroup]]
) {
    threadgroup float2 shared[MAX_SIMD_GROUPS];
    const GainedRow from = { x + ulong(row) * params.cols, gain };
    const HalvingPlace at = { row, thread_index, n_threads, { simd_group, lane, n_simd_groups } };
    halve_row(from, y, factor, params, shared, at);
}

template <typename Source>
kernel void gate_half_rows(
    device const float *gate           [[buffer(0)]],  // (rows, cols)
    device const float *up             [[buffer(1)]],  // (rows, cols)
    device half *y                     [[buffer(2)]],  // (rows, stride)
    device float *factor               [[buffer(3)]],  // (rows)
    constant HalfRowsParams &params    [[buffer(4)]],
    uint row                           [[threadgroup_position_in_grid]],
    uint thread_index                  [[thread_index_in_threadgroup]],
    uint n_threads                     [[threads_per_threadgroup]],
    uint simd_group                    [[simdgroup_index_in_threadgroup]],
    uint lane                          [[thread_index_in_simdgroup]],
    uint n_simd_groups                 [[simdgroups_per_threadgroup]]
) {
    threadgroup float2 shared[MAX_SIMD_GROUPS];
    const Source from = { gate + ulong(row) * params.cols, up + ulong(row) * params.cols };
    const HalvingPlace at = { row, thread_index, n_threads, { simd_group, lane, n_simd_groups } };
    halve_row(from, y, factor, params, shared, at);
}

typedef decltype(gate_half_rows<GatedRow<Silu>>) gate_half_rows_t;

template [[host_name("silu_half_rows_f32")]] kernel gate_half_rows_t gate_half_rows<GatedRow<Silu>>;
template [[host_name("gelu_half_rows_f32")]] kernel gate_half_rows_t gate_half_rows<GatedRow<Gelu>>;
