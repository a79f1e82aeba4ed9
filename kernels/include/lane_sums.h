// The sums of a lane of decode_gemm.h, shared_gemm.h and async_gemm.h: scaled, left as a part of K, added up and stored.
#pragma once

#include "include/few_rows.h"

// The factors of the two rows of each tile that a lane has sums of.
template <uint TILES>
struct RowFactors {
    float2 pairs[TILES];
};

// The sums of a lane: of outputs n and n + 8 of each matrix and rows m and m + 1 of each tile.
template <uint MATRICES, uint TILES>
struct LaneSums {
    float4 sums[MATRICES][TILES];
    uint m;
    uint n;
    uint n_rows;
    uint n_outputs;

    // The two sums of output `lower` of a matrix, and that output; one that there is.
    float2 pair(uint j, uint i, uint lower) const { return lower == 0 ? sums[j][i].xy : sums[j][i].zw; }
    void set_pair(uint j, uint i, uint lower, float2 pair) {
        sums[j][i] = lower == 0 ? float4(pair, sums[j][i].zw) : float4(sums[j][i].xy, pair);
    }
    uint output(uint j, uint lower) const { return n + j * MATRIX_OUTPUTS + lower * 8; }
    uint known_output(uint j, uint lower) const { return min(output(j, lower), n_outputs - 1); }
    uint known_row(uint i, uint next) const { return min(m + i * X_ROWS + next, n_rows - 1); }

    void clear() {
#pragma unroll
        for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
            for (uint i = 0; i < TILES; i++) {
                sums[j][i] = float4(0.0f);
            }
        }
    }

    // The factors of its rows.
    RowFactors<TILES> factors(device const float *of_rows) const {
        RowFactors<TILES> known;
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            known.pairs[i] = float2(of_rows[known_row(i, 0)], of_rows[known_row(i, 1)]);
        }
        return known;
    }

    // Times the factor of each row; 0 where there is no such row.
    void scale(RowFactors<TILES> factors) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            const uint row = m + i * X_ROWS;
#pragma unroll
            for (uint j = 0; j < MATRICES; j++) {
                const float4 scaled = sums[j][i] * factors.pairs[i].xyxy;
                sums[j][i].xz = row < n_rows ? scaled.xz : float2(0.0f);
                sums[j][i].yw = row + 1 < n_rows ? scaled.yw : float2(0.0f);
            }
        }
    }

    // Leaves all rows of the tiles that there are; those of an output lie behind each other, `stride` of them.
    void leave(device float *part, uint stride) const {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            if (m + i * X_ROWS < stride) {
#pragma unroll
                for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                    for (uint lower = 0; lower < 2; lower++) {
                        if (output(j, lower) < n_outputs) {
                            *(device float2 *)(part + output(j, lower) * stride + m + i * X_ROWS) = pair(j, i, lower);
                        }
                    }
                }
            }
        }
    }

    // Adds a part. Everything that is read is there, so that all of it can be asked for at once.
    void add(device const float *part, uint stride) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
#pragma unroll
            for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                for (uint lower = 0; lower < 2; lower++) {
                    const uint row = min(m + i * X_ROWS, stride - 2);
                    const float2 other = *(device const float2 *)(part + known_output(j, lower) * stride + row);
                    set_pair(j, i, lower, pair(j, i, lower) + other);
                }
            }
        }
    }

    // What y holds in their place.
    void load(device const float *y) {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
            device const float *first = y + ulong(known_row(i, 0)) * n_outputs;
            device const float *second = y + ulong(known_row(i, 1)) * n_outputs;
#pragma unroll
            for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                for (uint lower = 0; lower < 2; lower++) {
                    const uint at = known_output(j, lower);
                    set_pair(j, i, lower, float2(first[at], second[at]));
                }
            }
        }
    }

    // Adds beta times others.
    void add(thread const LaneSums &others, float beta) {
#pragma unroll
        for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
            for (uint i = 0; i < TILES; i++) {
                sums[j][i] += beta * others.sums[j][i];
            }
        }
    }

    void store(device float *y) const {
#pragma unroll
        for (uint i = 0; i < TILES; i++) {
#pragma unroll
            for (uint next = 0; next < 2; next++) {
                const uint row = m + i * X_ROWS + next;
                if (row < n_rows) {
                    device float *to = y + ulong(row) * n_outputs;
#pragma unroll
                    for (uint j = 0; j < MATRICES; j++) {
#pragma unroll
                        for (uint lower = 0; lower < 2; lower++) {
                            if (output(j, lower) < n_outputs) {
                                to[output(j, lower)] = next == 0 ? pair(j, i, lower).x : pair(j, i, lower).y;
                            }
                        }
                    }
                }
            }
        }
    }
};
