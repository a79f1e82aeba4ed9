//! Which keys a row sees.
//!
//! An active row sees the slots `0 .. length` of its sequence; with a window only the last `window` of those up to its own slot,
//! and all behind it: the rows of an image may see the whole image. An idle row sees nothing.
//!
//! Guesses may be a *tree*: rows of several branches in one step, each row in a slot of its own. A row then does not see
//! the slots of other branches (`Row::hidden`). Here `d` follows `a`, beside the branch `b c`:
//!
//! ```text
//! slot       0 1 2 3 4 5        row of d: position 4, length 6, hidden 0b110
//! token      x y a b c d        it sees x y a d, as keys 0 1 2 3
//! key of d   0 1 2 . . 3
//! ```

use std::ops::Range;

use akunu_types::params::Row;

use crate::constant::{Constant, Constants};

/// How the rows of one launch are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Sliding window: how many of the last keys a row sees.
    pub window: Option<u32>,
}

/// What a row sees: keys with consecutive numbers, and the slot of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The keys. Without hidden slots they are slots.
    pub keys: Range<usize>,
    /// The row's length.
    end: usize,
    hidden: u32,
}

impl Seen {
    /// The slot of a key.
    pub fn slot(&self, key: usize) -> usize {
        if key < self.first_hidden() {
            return key;
        }
        let mut slots = (self.first_hidden()..self.end).filter(|&slot| !self.hides(slot));
        slots.nth(key - self.first_hidden()).unwrap_or(self.end - 1)
    }

    /// The slots of all keys.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        self.keys.clone().map(|key| self.slot(key))
    }

    /// The first slot that it does not see; the row's length if it sees all.
    pub fn first_hidden(&self) -> usize {
        self.end - (u32::BITS - self.hidden.leading_zeros()) as usize
    }

    fn hides(&self, slot: usize) -> bool {
        let back = (self.end - 1 - slot) as u32;
        self.hidden.checked_shr(back).unwrap_or(0) & 1 != 0
    }
}

impl Mask {
    /// The mask that constants describe. A window of 0 is none.
    pub fn new(constants: &Constants) -> Mask {
        let window = constants.u32(Constant::Window);
        Mask {
            window: window.filter(|&keys| keys > 0),
        }
    }

    /// What a row sees.
    pub fn seen(&self, row: &Row) -> Seen {
        let (length, hidden) = match row.is_active() {
            true => (row.length, row.hidden),
            false => (0, 0),
        };
        let n_keys = length - hidden.count_ones();
        let n_before = length.min(row.slot.saturating_add(1)) - hidden.count_ones();
        let begin = self
            .window
            .map_or(0, |window| n_before.saturating_sub(window));
        Seen {
            keys: begin as usize..n_keys as usize,
            end: length as usize,
            hidden,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(row: Row, constants: &Constants) -> Vec<usize> {
        Mask::new(constants).seen(&row).slots().collect()
    }

    #[test]
    fn a_row_sees_itself_and_what_came_before() {
        let none = Constants::none();
        assert_eq!(seen(Row::at(0, 3), &none), [0, 1, 2, 3]);
        let idle = Row {
            flags: 0,
            hidden: 6,
            ..Row::at(0, 3)
        };
        assert!(seen(idle, &none).is_empty());
    }

    #[test]
    fn a_window_counts_the_row_itself() {
        let window = Constants::none().with_u32(Constant::Window, 2);
        assert_eq!(seen(Row::at(0, 3), &window), [2, 3]);
        assert_eq!(seen(Row::at(0, 0), &window), [0]);
    }

    /// Fails when the window of a row of an image begins later because the row sees what is behind it.
    #[test]
    fn a_row_of_an_image_sees_all_of_it() {
        let row = Row {
            length: 6,
            ..Row::at(0, 3)
        };
        assert_eq!(seen(row, &Constants::none()), [0, 1, 2, 3, 4, 5]);
        let window = Constants::none().with_u32(Constant::Window, 2);
        assert_eq!(seen(row, &window), [2, 3, 4, 5]);
    }

    /// Fails when a branch is seen by another, or when it makes a window shorter.
    #[test]
    fn other_branches_are_not_seen() {
        let none = Constants::none();
        assert_eq!(seen(Row::in_tree(0, 5, 0b110), &none), [0, 1, 2, 5]);
        assert_eq!(seen(Row::in_tree(0, 6, 0b101_0010), &none), [1, 3, 4, 6]);
        let window = Constants::none().with_u32(Constant::Window, 3);
        assert_eq!(seen(Row::in_tree(0, 5, 0b110), &window), [1, 2, 5]);
        let far = Row::in_tree(0, 40, 1 << 30);
        let wanted: Vec<usize> = (0..41).filter(|&slot| slot != 10).collect();
        assert_eq!(seen(far, &none), wanted);
    }
}
