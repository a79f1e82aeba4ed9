//! What lies in device memory and changes from token to token: a row for each token of a step, and a rule of choice
//! for each sequence.

use crate::layout::shared_struct;

shared_struct! {
    /// One token of a step: whose it is and where it stands.
    pub struct Row = "Row", size = 32 {
        /// Its sequence: the row of the page table and of the history, and the rule of its choice.
        0 => sequence: u32,
        /// What RoPE turns by.
        4 => position: u32,
        /// Where its own key and value go, among the slots of its sequence.
        8 => slot: u32,
        /// It sees the slots below this; with a window, the last ones of them.
        12 => length: u32,
        /// Tokens that were chosen for it since it was written; where its next one is recorded.
        16 => step: u32,
        /// [`Row::ACTIVE`], or 0: an idle row stores nothing, attends to nothing and chooses nothing. With
        /// [`Row::ALONE`] an active row is computed as if no other of its sequence were there.
        20 => flags: u32,
        /// The first slot that the tree mask speaks of; [`Row::NO_TREE`] where there is none.
        24 => tree_first: u32,
        /// Bit i: it sees slot `tree_first + i`. Slots 32 and more beyond `tree_first` it does not see.
        28 => tree_mask: u32,
    }
}

impl Row {
    /// The flag of a row that takes part.
    pub const ACTIVE: u32 = 1;
    /// The flag of a row whose attention is rounded as that of a single row, also beside others of its sequence.
    pub const ALONE: u32 = 2;
    /// No slot is subject to a tree mask.
    pub const NO_TREE: u32 = u32::MAX;

    /// The row of the token at `position` of a sequence, which sees itself and all before it.
    pub const fn at(sequence: u32, position: u32) -> Row {
        Row {
            sequence,
            position,
            slot: position,
            length: position + 1,
            step: 0,
            flags: Row::ACTIVE,
            tree_first: Row::NO_TREE,
            tree_mask: 0,
        }
    }

    /// The same row, computed as if it were the only one of its sequence.
    pub const fn alone(self) -> Row {
        Row {
            flags: self.flags | Row::ALONE,
            ..self
        }
    }

    /// Whether it is computed as if it were the only one of its sequence.
    pub const fn is_alone(&self) -> bool {
        self.flags & Row::ALONE != 0
    }

    /// Whether it takes part.
    pub const fn is_active(&self) -> bool {
        self.flags & Row::ACTIVE != 0
    }
}

shared_struct! {
    /// How the tokens of one sequence are chosen.
    pub struct SamplingRule = "SamplingRule", size = 48 {
        /// `1 / temperature`, applied after the candidates are thinned out.
        0 => inv_temperature: f32,
        /// The best tokens are kept until their probabilities sum to this; 1 keeps all.
        4 => top_p: f32,
        /// A token is kept if it is at least this share as probable as the best one; 0 keeps all.
        8 => min_p: f32,
        /// Above 1 discourages tokens that came before; 1 does nothing.
        12 => penalty: f32,
        /// How many of the best tokens are candidates; 0 for as many as a launch keeps.
        16 => top_k: u32,
        /// How many of the last tokens are penalised; 0 for all.
        20 => penalty_window: u32,
        /// Low word of the seed.
        24 => seed_lo: u32,
        /// High word of the seed.
        28 => seed_hi: u32,
        /// 1: the best candidate is taken, and nothing is drawn.
        32 => is_greedy: u32,
        /// Unused, zero.
        36 => _pad0: u32,
        /// Unused, zero.
        40 => _pad1: u32,
        /// Unused, zero.
        44 => _pad2: u32,
    }
}

shared_struct! {
    /// Records the token of each active row and moves the row on by one.
    pub struct AdvanceRowsParams = "AdvanceRowsParams", size = 16 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Tokens of one step in the record.
        4 => chosen_stride: u32,
        /// Steps that the record has room for; after the last it begins again. 0: nothing is recorded.
        8 => max_steps: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// Copies some rows of a matrix: those whose results are wanted.
    pub struct GatherRowsParams = "GatherRowsParams", size = 16 {
        /// Number of rows to copy.
        0 => n_rows: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// Rows of the matrix.
        8 => row_capacity: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}
