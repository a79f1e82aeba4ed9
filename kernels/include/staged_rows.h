// The copies of shared_gemm.h to threadgroup memory: rows of weights by each SIMD group for itself, tiles of x by all that share
// them. Both are rings of stages, which are filled while earlier ones are multiplied.
#pragma once

#include "include/staged_span.h"

// The last bytes of the weights, an even number below 16, and zeros behind them.
inline void copy_rest(threadgroup ushort *to, device const ushort *from, uint n_bytes) {
#pragma unroll(1)
    for (uint i = 0; i < 8; i++) {
        to[i] = 2 * i < n_bytes ? from[i] : ushort(0);
    }
}

// The rows of weights of a SIMD group, and its ring in threadgroup memory. Of every eight rows, four lanes copy one.
template <typename F, uint OUTPUTS = StagedStep<F>::OUTPUTS>
struct StagedRows {
    typedef StagedStep<F> Step;
    static constant constexpr uint STAGE = OUTPUTS * Step::VECTORS;
    static constant constexpr uint PASSES = OUTPUTS / 8;
    // Vectors of a step of a row that begins anywhere, and those of a lane.
    static constant constexpr uint NEEDED = (Step::BYTES + (Step::ANYWHERE ? 14 : 0) + 15) / 16;
    static constant constexpr uint COPIES = (NEEDED + 3) / 4;
    static_assert(NEEDED <= Step::VECTORS, "a row has its place");
    threadgroup uint4 *ring;
    uint lane;
    device const uchar *first;  // a multiple of 16 bytes, in or before the first row
    uint first_begin;           // where the first row begins behind that
    uint row_bytes;
    uint last_row;  // the last of the rows that there is
    uint end;       // of the weights, behind `first`; or less, if it is far

    // Of the weights (n_rows, n_spans), the rows from first_n on; where there are none, the last.
    void begin(device const uchar *weight, uint n_rows, uint first_n, uint n_spans) {
        row_bytes = n_spans * Step::BYTES / Step::SPANS;
        const uint row = min(first_n, n_rows - 1);
        const ulong place = ulong(row) * row_bytes;
        first = weight + (place & ~15ul);
        first_begin = uint(place & 15);
        last_row = min(OUTPUTS, n_rows - row) - 1;
        end = uint(min(first_begin + ulong(n_rows - row) * row_bytes, 0xffffffc0ul));
    }

    // Where a step of a row begins, behind `first`.
    uint place(uint row, uint step) const { return first_begin + min(row, last_row) * row_bytes + step * Step::BYTES; }

    // Begins to copy a step to a stage of the ring, if there is such a step: more than the step where that is as easy, and nothing
    // behind the weights. All lanes must call it.
    void copy(uint step, uint n_steps, uint stage_index, thread nvidia::AsyncCopies &copies) {
        if (step >= n_steps) {
            return;
        }
        threadgroup uint4 *stage = ring + stage_index * STAGE + lane / 4 * Step::VECTORS + lane % 4;
        if (place(last_row, step) + NEEDED * 16 > end) {
            return copy_last(stage, step, copies);
        }
#pragma unroll
        for (uint pass = 0; pass < PASSES; pass++) {
            const uint from = (place(8 * pass + lane / 4, step) & ~15u) + lane % 4 * 16;
#pragma unroll
            for (uint i = 0; i < COPIES; i++) {
                if (4 * i + 4 <= NEEDED || 4 * i + lane % 4 < NEEDED) {
                    copies.copy(stage + 8 * pass * Step::VECTORS + 4 * i, (device const uint4 *)(first + from) + 4 * i);
                }
            }
        }
    }

    // The same where the weights end.
    void copy_last(threadgroup uint4 *stage, uint step, thread nvidia::AsyncCopies &copies) {
#pragma unroll(1)
        for (uint pass = 0; pass < PASSES; pass++) {
            const uint from = (place(8 * pass + lane / 4, step) & ~15u) + lane % 4 * 16;
            threadgroup uint4 *to = stage + 8 * pass * Step::VECTORS;
#pragma unroll(1)
            for (uint i = 0; 4 * i + lane % 4 < NEEDED; i++) {
                const uint at = from + 64 * i;
                if (at + 16 <= end) {
                    copies.copy(to + 4 * i, (device const uint4 *)(first + at));
                } else if (at < end) {
                    copy_rest((threadgroup ushort *)(to + 4 * i), (device const ushort *)(first + at), end - at);
                }
            }
        }
    }
};

// The tiles of x of a threadgroup, and a ring of quads of them that the SIMD groups of a split share.
template <uint TILES>
struct StagedTiles {
    static constant constexpr uint STAGE = TILES * QUAD_VECTORS;
    threadgroup uint4 *ring;
    device const uint4 *first;
    uint tile_vectors;  // from one tile to the next
    uint last_tile;
    uint n_quads;
    uint lane;
    uint column;  // of the SIMD groups that share it: each copies every n_columns-th tile
    uint n_columns;

    // Begins to copy a quad to a stage of the ring, if there is such a quad. Tiles that are not there are the last one again: what
    // is multiplied with them is not stored.
    void copy(uint quad, uint stage_index, thread nvidia::AsyncCopies &copies) {
        if (quad >= n_quads) {
            return;
        }
#pragma unroll(1)
        for (uint tile = column; tile < TILES; tile += n_columns) {
            device const uint4 *from = first + min(tile, last_tile) * tile_vectors + quad * QUAD_VECTORS + lane;
            threadgroup uint4 *to = ring + stage_index * STAGE + tile * QUAD_VECTORS + lane;
#pragma unroll
            for (uint i = 0; i < QUAD_VECTORS; i += SIMD_WIDTH) {
                copies.copy(to + i, from + i);
            }
        }
    }
};
