//! What a loaded program takes.

use super::{Counts, PageMap, SequenceSlots, StepMemory};

/// What a loaded program has room for, and what steps for it must have been checked for.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Where its rows lie; `None` for a program without rows.
    pub step: Option<StepMemory>,
    /// How many rows it takes.
    pub counts: Counts,
    /// Whether it moves its rows on, so that it can run several times.
    pub advances: bool,
    /// Where the keys and values that it reads are.
    pub pages: Vec<PageMap>,
    /// Blocks of the states that it reads and writes, if it does.
    pub states: Option<u32>,
    /// The slots of a sequence that it moves, if it does.
    pub moved: Option<SequenceSlots>,
    /// Whether its rows attend to the other rows of their texts.
    pub reads_texts: bool,
}
