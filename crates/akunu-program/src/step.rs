//! A step: the rows that go through a program together, and the memory in which they lie.
//!
//! ```text
//! row table    sequence position slot length …     a row for each token of the step
//! page table   (sequences, pages)                   where the keys of a sequence lie, for each kind of layer
//! tokens       what each row reads                  and what was chosen last
//! outputs      the rows whose logits are wanted
//! chosen       (steps, rows)                        a ring: what a chain has chosen
//! ```
//!
//! Rows come in two kinds: *singles*, each the next token of a sequence of its own, and after them a *run*, tokens that
//! follow each other in one sequence. Singles of one sequence may also follow each other, or be the branches of a tree. The host keeps a copy of all that in a [`RowTable`], which proves for all rounds of
//! a submission that no row leaves its pages, and nothing else can be submitted.

mod admit;
mod error;
mod room;
mod states;
mod table;
mod tree;

use std::ops::Range;

use crate::buffer::Buffer;

pub use self::error::RowError;
pub use self::room::Room;
pub use self::table::{Checked, RowTable};

/// How many rows a step has, or has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Rows of sequences of their own.
    pub singles: u32,
    /// Rows after them that follow each other in one sequence.
    pub run: u32,
    /// Rows whose logits are wanted.
    pub outputs: u32,
}

impl Counts {
    /// All rows.
    pub fn rows(&self) -> u32 {
        self.singles + self.run
    }

    /// Whether a program with this room can take them.
    pub fn fit(&self, room: &Counts) -> bool {
        self.singles <= room.singles && self.run <= room.run && self.outputs <= room.outputs
    }

    /// The number of this kind.
    pub fn of(&self, count: Count) -> u32 {
        match count {
            Count::Rows => self.rows(),
            Count::Singles => self.singles,
            Count::Run => self.run,
            Count::Outputs => self.outputs,
        }
    }
}

/// A number of rows that a kernel's params depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// All rows.
    Rows,
    /// The singles; also where the run begins.
    Singles,
    /// The rows of the run.
    Run,
    /// The rows whose logits are wanted.
    Outputs,
}

/// Which rows an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All rows of the step.
    All,
    /// The rows whose logits are wanted, brought together by [`Op::Gather`](crate::Op::Gather).
    Outputs,
}

impl Rows {
    /// The number of them.
    pub fn count(self) -> Count {
        match self {
            Rows::All => Count::Rows,
            Rows::Outputs => Count::Outputs,
        }
    }
}

/// The buffers of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMemory {
    /// The row table, (row_capacity) of [`akunu_types::params::Row`].
    pub rows: Buffer,
    /// The token that each row reads, (row_capacity); a choice overwrites it.
    pub tokens: Buffer,
    /// The rows whose logits are wanted, (row_capacity).
    pub outputs: Buffer,
    /// How tokens are chosen, (n_sequences) of [`akunu_types::params::SamplingRule`].
    pub rules: Buffer,
    /// The last tokens of each sequence, (n_sequences, history_stride): token t lies at `t % history_stride`.
    pub history: Buffer,
    /// What was chosen, (max_steps, row_capacity).
    pub chosen: Buffer,
    /// Rows of the table.
    pub row_capacity: u32,
    /// Sequences.
    pub n_sequences: u32,
    /// Tokens of each sequence's history.
    pub history_stride: u32,
    /// Steps that the record of choices holds.
    pub max_steps: u32,
}

/// Where the pages of one kind of layers are found: layers that see everything, or layers with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMap {
    /// The pages of each sequence, (n_sequences, table_stride).
    pub table: Buffer,
    /// Pages of a sequence, at most.
    pub table_stride: u32,
    /// A page holds `1 << page_shift` slots.
    pub page_shift: u32,
    /// Pages of the pool.
    pub n_pages: u32,
    /// Sequences.
    pub n_sequences: u32,
    /// How far these layers look back, the row itself included; `None` for everything.
    pub window: Option<u32>,
}

impl PageMap {
    /// The page of a sequence that a slot lies in.
    pub fn page_of(&self, slot: u32) -> u32 {
        slot >> self.page_shift
    }

    /// Slots of a sequence, at most.
    pub fn capacity(&self) -> u64 {
        u64::from(self.table_stride) << self.page_shift
    }
}

/// Slots of one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceSlots {
    /// The sequence.
    pub sequence: u32,
    /// Its slots.
    pub slots: Range<u32>,
}
