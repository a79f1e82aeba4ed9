// The rows of a step that go on from a state in one block and leave theirs in another.
//
// Active rows of a sequence lie together. The first of them leads: its threads walk through all of them. A thread
// reads and writes the same numbers of a state in whichever block it is, so that nobody waits for another.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "include/row_table.h"

using namespace metal;

// No block: a state of zeros, or a state that is not kept.
constant constexpr uint NO_STATE = 0xffff;
constant constexpr uint NO_ROW = 0xffffffff;

// A block that a row names, if it is there.
inline uint state_block(uint number, uint n_blocks) {
    return number < min(n_blocks, NO_STATE) ? number : NO_STATE;
}

// The block that a row goes on from.
inline uint state_from(device const Row &row, uint n_blocks) {
    return state_block(row.states & 0xffff, n_blocks);
}

// The block that a row leaves its state in.
inline uint state_to(device const Row &row, uint n_blocks) {
    return state_block(row.states >> 16, n_blocks);
}

// The active row before this one, if it is of the same sequence.
inline uint row_before(device const Row *rows, uint at) {
    uint before = at;
    while (before > 0 && !is_active(rows[before - 1])) {
        before--;
    }
    return before > 0 && rows[before - 1].sequence == rows[at].sequence ? before - 1 : NO_ROW;
}

// The active row behind this one, if it is of the same sequence.
inline uint row_behind(device const Row *rows, uint at, uint n_rows) {
    uint behind = at + 1;
    while (behind < n_rows && !is_active(rows[behind])) {
        behind++;
    }
    return behind < n_rows && rows[behind].sequence == rows[at].sequence ? behind : NO_ROW;
}

// The block that this row must store its state in: none where the next row of the sequence overwrites it.
inline uint stored_to(device const Row *rows, uint at, uint next, uint n_blocks) {
    const uint to = state_to(rows[at], n_blocks);
    return next != NO_ROW && state_to(rows[next], n_blocks) == to ? NO_STATE : to;
}
