//! Which keys a row sees.
//!
//! An active row sees the slots `0 .. length` of its sequence; with a window only the last `window` of
//! them; and where tree masks are looked at, of the slots from `tree_first` on only `tree_first + i` with
//! bit i of its mask, i below 32. An idle row sees nothing.

use std::ops::Range;

use akunu_types::params::Row;

use crate::constant::{Constant, Constants};

/// Most drafts of a speculation that a tree mask can name.
pub const MAX_DRAFTS: u32 = u32::BITS;

/// How the rows of one launch are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Sliding window: how many of the last keys a row sees.
    pub window: Option<u32>,
    /// Tree masks are looked at.
    pub has_tree: bool,
}

impl Mask {
    /// The mask that constants describe. A window of 0 is none.
    pub fn new(constants: &Constants) -> Mask {
        let window = constants.u32(Constant::Window);
        Mask {
            window: window.filter(|&keys| keys > 0),
            has_tree: constants.bool(Constant::TreeMask),
        }
    }

    /// What a row sees.
    pub fn seen(&self, row: &Row) -> Seen {
        let length = if row.is_active() { row.length } else { 0 };
        let begin = self
            .window
            .map_or(0, |window| length.saturating_sub(window));
        let tree = self.has_tree.then_some((row.tree_first, row.tree_mask));
        Seen {
            slots: begin as usize..length as usize,
            tree,
        }
    }
}

/// The slots that one row sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// All of them, whatever the tree mask.
    pub slots: Range<usize>,
    /// The first slot that the tree mask speaks of, and the mask.
    pub tree: Option<(u32, u32)>,
}

impl Seen {
    /// Whether the row sees a slot.
    pub fn contains(&self, slot: usize) -> bool {
        self.slots.contains(&slot) && self.is_in_tree(slot)
    }

    fn is_in_tree(&self, slot: usize) -> bool {
        let Some((first, mask)) = self.tree else {
            return true;
        };
        match slot.checked_sub(first as usize) {
            Some(draft) => draft < MAX_DRAFTS as usize && mask >> draft & 1 == 1,
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(row: Row, constants: &Constants) -> Vec<usize> {
        let seen = Mask::new(constants).seen(&row);
        (0..100).filter(|&slot| seen.contains(slot)).collect()
    }

    #[test]
    fn a_row_sees_itself_and_what_came_before() {
        let none = Constants::none();
        assert_eq!(seen(Row::at(0, 3), &none), [0, 1, 2, 3]);
        let idle = Row {
            flags: 0,
            ..Row::at(0, 3)
        };
        assert_eq!(seen(idle, &none), []);
    }

    #[test]
    fn a_window_counts_the_row_itself() {
        let window = Constants::none().with_u32(Constant::Window, 2);
        assert_eq!(seen(Row::at(0, 3), &window), [2, 3]);
        assert_eq!(seen(Row::at(0, 0), &window), [0]);
    }

    /// Drafts 1 and 2 are both children of draft 0.
    #[test]
    fn drafts_see_the_prompt_and_their_ancestors() {
        let tree = Constants::none().with_bool(Constant::TreeMask, true);
        let draft = |tree_mask| Row {
            length: 5,
            tree_first: 2,
            tree_mask,
            ..Row::at(0, 3)
        };
        assert_eq!(seen(draft(0b011), &tree), [0, 1, 2, 3]);
        assert_eq!(seen(draft(0b101), &tree), [0, 1, 2, 4]);
        assert_eq!(seen(draft(0b101), &Constants::none()), [0, 1, 2, 3, 4]);
        assert_eq!(seen(Row::at(0, 4), &tree), [0, 1, 2, 3, 4]);
        let long = Row {
            length: 40,
            ..draft(u32::MAX)
        };
        assert_eq!(seen(long, &tree).len(), 34);
    }
}
