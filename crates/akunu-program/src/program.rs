//! A program: operations, and the rows that they work on.

use crate::attention::RowKeys;
use crate::op::Op;
use crate::step::{Counts, PageMap, Room, SequenceSlots, StepMemory};

/// A program: operations in order.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The operations.
    pub ops: Vec<Op>,
    /// Where the rows lie; `None` for a program without rows.
    pub step: Option<StepMemory>,
    /// How many rows it has room for.
    pub room: Counts,
}

impl Program {
    /// What a device must have room for to run it, and what a step for it must have been checked for.
    pub fn plan_room(&self) -> Room {
        Room {
            step: self.step,
            counts: self.room,
            advances: self.advances(),
            pages: self.pages(),
            states: self.states(),
            moved: self.moved_slots(),
            reads_texts: self.reads_texts(),
        }
    }

    /// Where the keys and values that it reads are.
    pub fn pages(&self) -> Vec<PageMap> {
        let mut pages = Vec::new();
        for op in &self.ops {
            let cache = match op {
                Op::RopeStore(store) => &store.cache,
                Op::Attend(attend) => &attend.cache,
                Op::Shift(shift) => &shift.cache,
                _ => continue,
            };
            if !pages.contains(&cache.pages) {
                pages.push(cache.pages);
            }
        }
        pages
    }

    /// Blocks of the states that it reads and writes, if it does.
    pub fn states(&self) -> Option<u32> {
        let pool = |op: &Op| match op {
            Op::ShortConv(conv) => Some(conv.state.n_blocks),
            Op::DeltaRule(rule) => Some(rule.state.n_blocks),
            _ => None,
        };
        self.ops.iter().find_map(pool)
    }

    /// The slots of a sequence that it moves, if it does.
    pub fn moved_slots(&self) -> Option<SequenceSlots> {
        self.ops.iter().find_map(|op| match op {
            Op::Shift(shift) => {
                let end = shift.keep.saturating_add(shift.shift);
                Some(SequenceSlots {
                    sequence: shift.sequence,
                    slots: shift.keep..end.saturating_add(shift.len),
                })
            }
            _ => None,
        })
    }

    /// Whether its rows attend to the other rows of their texts.
    pub fn reads_texts(&self) -> bool {
        self.ops.iter().any(|op| match op {
            Op::AttendRows(attend) => !matches!(attend.keys, RowKeys::Across { .. }),
            Op::Mean(_) => true,
            _ => false,
        })
    }

    /// Whether it moves its rows to their next positions, so that it can run several times in one submission.
    pub fn advances(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Advance))
    }
}
