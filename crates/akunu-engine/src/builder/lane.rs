//! Whose rows a plan has.

use akunu_kernels::plan::Slice;

use crate::memory::Memory;

/// Rows that follow each other in one sequence: all rows of a prompt, or the one row that a sequence
/// has in a step of several.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a> {
    /// The sequence's cache and tokens.
    pub memory: &'a Memory,
    /// Positions that its cache holds.
    pub context: u32,
    /// Its first row among all rows of the plan.
    pub first_row: u32,
    /// How many there are.
    pub n_rows: u32,
    /// How far its first row is ahead of the position that the plan runs at.
    pub ahead: u32,
}

/// Where a lane's next token is chosen from and where it goes.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// The sequence: its history is penalised, and gets the token.
    pub lane: Lane<'a>,
    /// The logits of its last row.
    pub logits: Slice,
    /// Where the next step reads its token.
    pub token: Slice,
}
