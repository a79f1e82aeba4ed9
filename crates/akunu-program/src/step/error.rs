//! Why a step was refused.

/// Why a step was refused, before any of it ran.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowError {
    /// A row of a sequence that there is not.
    #[error("row {row} is of sequence {sequence}, and there are {n_sequences}")]
    Sequence {
        /// The row.
        row: u32,
        /// Its sequence.
        sequence: u32,
        /// Sequences that there are.
        n_sequences: u32,
    },
    /// A slot beyond what a sequence may have.
    #[error("sequence {sequence} would use slot {slot}, and has room for {capacity}")]
    Beyond {
        /// The sequence.
        sequence: u32,
        /// The slot.
        slot: u64,
        /// Slots that it may have.
        capacity: u64,
    },
    /// A slot without a page.
    #[error("slot {slot} of sequence {sequence} has no page")]
    Missing {
        /// The sequence.
        sequence: u32,
        /// The first slot of the page that is missing.
        slot: u64,
    },
    /// A page that the pool does not have.
    #[error("sequence {sequence} is given page {page}, and the pool has {n_pages}")]
    Page {
        /// The sequence.
        sequence: u32,
        /// The page.
        page: u32,
        /// Pages of the pool.
        n_pages: u32,
    },
    /// A page that would be written and that more than one sequence has.
    #[error("sequence {sequence} would write to page {page}, which {owners} sequences have")]
    Shared {
        /// The sequence.
        sequence: u32,
        /// The page.
        page: u32,
        /// Sequences that have it.
        owners: u32,
    },
    /// A block of states that the pool does not have.
    #[error("row {row} is given the state in block {block}, and there are {n_blocks}")]
    Block {
        /// The row.
        row: u32,
        /// The block.
        block: u32,
        /// Blocks of the pool.
        n_blocks: u32,
    },
    /// A block that one sequence writes and a different one uses.
    #[error("row {row} uses the state in block {block}, which another sequence writes")]
    State {
        /// The row.
        row: u32,
        /// The block.
        block: u32,
    },
    /// Two rows that would be stored in the same place, or out of order.
    #[error("row {row} of sequence {sequence} does not come after the others of that sequence")]
    Order {
        /// The row.
        row: u32,
        /// Its sequence.
        sequence: u32,
    },
    /// Two rows of one sequence for a program that moves each row to its next position.
    #[error("row {row} is not the only one of sequence {sequence}, which the program moves on")]
    NotAlone {
        /// The row.
        row: u32,
        /// Its sequence.
        sequence: u32,
    },
    /// A row of a tree that does not see what its parent sees, that hides a slot which no row before it in the step has,
    /// or whose position does not follow from the number of slots that it sees before its own.
    #[error("row {row} of sequence {sequence} has no place in the tree of its sequence: {why}")]
    Tree {
        /// The row.
        row: u32,
        /// Its sequence.
        sequence: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A row of an image that sees a slot behind its own which no row of the run stores.
    #[error("row {row} of sequence {sequence} sees slot {slot}, which the step does not store")]
    Ahead {
        /// The row.
        row: u32,
        /// Its sequence.
        sequence: u32,
        /// The last slot that it sees.
        slot: u32,
    },
    /// Rows of a text that do not follow each other from its first token to its last.
    #[error("row {row} is not the next row of its text")]
    Text {
        /// The row.
        row: u32,
    },
    /// More rows, outputs or rounds than there is room for.
    #[error("{found} {what} are more than the {room} that there is room for")]
    Room {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        found: u32,
        /// How many fit.
        room: u32,
    },
    /// The logits of a row that there is not.
    #[error("the logits of row {row} are wanted, and there are {rows}")]
    Output {
        /// The row.
        row: u32,
        /// Rows that there are.
        rows: u32,
    },
    /// A step for a program that reads another row table, or whose pages were not checked.
    #[error("the step was not checked for this program")]
    Foreign,
    /// A chain of a program that does not move its rows on.
    #[error("a program that does not move its rows on cannot run {steps} times")]
    Still {
        /// The number of rounds.
        steps: u32,
    },
}
