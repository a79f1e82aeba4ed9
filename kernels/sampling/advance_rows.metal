// advance_rows: records the token of each active row and moves the row on by one
//
//     chosen[step % max_steps][r] = tokens[r];   position, slot, length, step += 1;   from = to
//
// Without a record (max_steps = 0) the rows only move on.
//
// Launch:  one thread a row, threadgroups of 256.
// Memory:  each row is read and written once.

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

kernel void advance_rows(
    device Row *rows                    [[buffer(0)]],
    device const uint *tokens           [[buffer(1)]],
    device uint *chosen                 [[buffer(2)]],
    constant AdvanceRowsParams &params  [[buffer(3)]],
    uint index                          [[thread_position_in_grid]]
) {
    if (index >= params.n_rows || !is_active(rows[index])) {
        return;
    }
    device Row &row = rows[index];
    if (params.max_steps != 0) {
        chosen[ulong(row.step % params.max_steps) * params.chosen_stride + index] = tokens[index];
    }
    row.position += 1;
    row.slot += 1;
    row.length += 1;
    row.step += 1;
    // The next token goes on from the state that this one left.
    row.states = row.states >> 16 | (row.states & 0xffff0000);
}
