// Products of a few rows with the matrices of their experts, on NVIDIA's GPUs: staging and products are those of decode_gemv.h.
//
// Which weights a threadgroup reads follows from ids, which the kernel before has written: nothing is loaded ahead.
//
// Memory:  the weights of an expert are read once for each row that uses it. x is read once by each threadgroup.
#pragma once

#include "include/decode_gemv.h"
#include "include/experts.h"

// The outputs of gate and up, for all experts of a row. Half of a SIMD group's weights are of the gate, the others of up.
template <typename F, uint ROWS>
struct ExpertGateOutputs {
    static constant constexpr uint OUTPUTS = ROWS / 2;

    device const uint *ids;  // (n_used)
    device const uchar *gate;
    device const uchar *up;
    device const float *gate_bias;
    device const float *up_bias;
    device const float *gate_scale;
    device const float *up_scale;
    device float *y;  // (n_used, N)
    constant ExpertParams *params;

    uint turns_of_one(DecodePlace at) const { return ceil_divide(params->N, OUTPUTS * at.n_columns); }
    uint n_turns(DecodePlace at) const { return params->n_used * turns_of_one(at); }
    uint used(uint turn, DecodePlace at) const { return turn / turns_of_one(at); }
    uint expert(uint turn, DecodePlace at) const { return min(ids[used(turn, at)], params->n_experts - 1); }
    uint first(uint turn, DecodePlace at) const { return (turn % turns_of_one(at) * at.n_columns + at.column) * OUTPUTS; }

    template <typename R>
    void take_both(uint turn, DecodePlace at, thread typename R::Row (&rows)[ROWS]) const {
        const ExpertRows of = expert_rows(*params, expert(turn, at));
        const WeightLayout layouts[2] = { first_layout(*params, of.end), second_layout(*params, of.end) };
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            const uint row = min(of.first + first(turn, at) + r % OUTPUTS, of.end - 1);
            rows[r] = R::row(r < OUTPUTS ? gate : up, layouts[r / OUTPUTS], row);
        }
    }
    void take(uint turn, DecodePlace at, thread typename Spans<F>::Row (&rows)[ROWS]) const {
        take_both<Spans<F>>(turn, at, rows);
    }
    void rest(uint turn, DecodePlace at, thread PlainX &x, uint K, thread float (&sums)[ROWS]) const {
        typename F::Row plain[ROWS];
        take_both<F>(turn, at, plain);
        dot_rest<F, ROWS>(plain, x, K, at.lane, sums);
    }
    void x_was_read(thread PlainX &, DecodePlace) const {}
    void store(uint turn, DecodePlace at, float product) const {
        const uint n = first(turn, at) + at.lane;
        const float up_product = simd_shuffle_down(product, ushort(OUTPUTS));
        if (at.split != 0 || at.lane >= OUTPUTS || n >= params->N) {
            return;
        }
        const uint of = expert(turn, at);
        const float g = finished(product, *params, of, n, gate_bias, gate_scale);
        const float u = finished(up_product, *params, of, n, up_bias, up_scale);
        y[ulong(used(turn, at)) * params->N + n] = expert_activation(g, u, params->activation);
    }
};

// y[r][i][n] = gate(Wgate[e][n] . x[r], Wup[e][n] . x[r]), e = ids[r][i]
//
// Launch:  grid (n_used * ceil(N / (ROWS / 2 * columns)), n_rows), threadgroups of (32 * columns, splits) threads, up to MAX_TEAM
//          SIMD groups. Of formats that are multiplied as bytes there may be fewer threadgroups, which take turns.
template <typename F, uint ROWS>
kernel void decode_expert_gate(
    device const float *x             [[buffer(0)]],  // (n_rows, K)
    device const uint *ids            [[buffer(1)]],  // (n_rows, n_used)
    device const uchar *gate          [[buffer(2)]],  // (n_experts, N, K)
    device const uchar *up            [[buffer(3)]],  // (n_experts, N, K)
    device const float *gate_bias     [[buffer(4)]],  // (n_experts, N)
    device const float *up_bias       [[buffer(5)]],  // (n_experts, N)
    device const float *gate_scale    [[buffer(6)]],  // (n_experts)
    device const float *up_scale      [[buffer(7)]],  // (n_experts)
    device float *y                   [[buffer(8)]],  // (n_rows, n_used, N)
    constant ExpertParams &params     [[buffer(9)]],
    uint2 group                       [[threadgroup_position_in_grid]],
    uint2 groups                      [[threadgroups_per_grid]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint2 threads                     [[threads_per_threadgroup]]
) {
    threadgroup uint4 stage[STAGE<F>];
    threadgroup float shares[MAX_TEAM * ROWS];
    static_assert(sizeof(stage) + sizeof(shares) <= 48 * 1024, "threadgroup memory");

    inputs_are_ready();
    const DecodePlace at = decode_place(uint2(group.x, groups.x), thread_index, threads);
    const ulong row = group.y;
    PlainX own = { x + row * params.K, params.K % 4 == 0 };
    ExpertGateOutputs<F, ROWS> outputs = {
        ids + row * params.n_used, gate,       up,       gate_bias, up_bias,
        gate_scale,                up_scale, y + row * params.n_used * params.N, &params,
    };
    all_turns<F, ROWS>(outputs, own, params.K, at, stage, shares);
}

// The outputs of the last product, for one expert of a row.
template <typename F, uint ROWS>
struct ExpertDownOutputs {
    uint expert;
    device const uchar *weight;
    device const float *bias;
    device const float *scale;
    device float *y;  // (N)
    constant ExpertParams *params;

    uint n_turns(DecodePlace at) const { return ceil_divide(params->N, ROWS * at.n_columns); }
    uint first(uint turn, DecodePlace at) const { return (turn * at.n_columns + at.column) * ROWS; }

    template <typename R>
    void take_own(uint turn, DecodePlace at, thread typename R::Row (&rows)[ROWS]) const {
        const ExpertRows of = expert_rows(*params, expert);
        take_rows<R, ROWS>(weight, first_layout(*params, of.end), of.first + first(turn, at), rows);
    }
    void take(uint turn, DecodePlace at, thread typename Spans<F>::Row (&rows)[ROWS]) const {
        take_own<Spans<F>>(turn, at, rows);
    }
    void rest(uint turn, DecodePlace at, thread PlainX &x, uint K, thread float (&sums)[ROWS]) const {
        typename F::Row plain[ROWS];
        take_own<F>(turn, at, plain);
        dot_rest<F, ROWS>(plain, x, K, at.lane, sums);
    }
    void x_was_read(thread PlainX &, DecodePlace) const {}
    void store(uint turn, DecodePlace at, float product) const {
        const uint n = first(turn, at) + at.lane;
        if (at.split == 0 && at.lane < ROWS && n < params->N) {
            y[n] = finished(product, *params, expert, n, bias, scale);
        }
    }
};

// y[r][i][n] = W[e][n] . x[r][i], e = ids[r][i]
//
// Launch:  grid (ceil(N / (ROWS * columns)), n_rows * n_used); the rest as above.
template <typename F, uint ROWS>
kernel void decode_expert_down(
    device const float *x             [[buffer(0)]],  // (n_rows, n_used, K)
    device const uint *ids            [[buffer(1)]],  // (n_rows, n_used)
    device const uchar *weight        [[buffer(2)]],  // (n_experts, N, K)
    device const float *bias          [[buffer(3)]],  // (n_experts, N)
    device const float *scale         [[buffer(4)]],  // (n_experts)
    device float *y                   [[buffer(5)]],  // (n_rows, n_used, N)
    constant ExpertParams &params     [[buffer(6)]],
    uint2 group                       [[threadgroup_position_in_grid]],
    uint2 groups                      [[threadgroups_per_grid]],
    uint thread_index                 [[thread_index_in_threadgroup]],
    uint2 threads                     [[threads_per_threadgroup]]
) {
    threadgroup uint4 stage[STAGE<F>];
    threadgroup float shares[MAX_TEAM * ROWS];
    static_assert(sizeof(stage) + sizeof(shares) <= 48 * 1024, "threadgroup memory");

    inputs_are_ready();
    const DecodePlace at = decode_place(uint2(group.x, groups.x), thread_index, threads);
    const ulong result = group.y;
    PlainX own = { x + result * params.K, params.K % 4 == 0 };
    ExpertDownOutputs<F, ROWS> outputs = {
        min(ids[result], params.n_experts - 1), weight, bias, scale, y + result * params.N, &params,
    };
    all_turns<F, ROWS>(outputs, own, params.K, at, stage, shares);
}
