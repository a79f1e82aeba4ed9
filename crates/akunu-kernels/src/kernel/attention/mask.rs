//! Which keys a row sees.
//!
//! An active row sees the slots `0 .. length` of its sequence; with a window only the last `window` of them. An idle row
//! sees nothing.

use std::ops::Range;

use akunu_types::params::Row;

use crate::constant::{Constant, Constants};

/// How the rows of one launch are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Sliding window: how many of the last keys a row sees.
    pub window: Option<u32>,
}

impl Mask {
    /// The mask that constants describe. A window of 0 is none.
    pub fn new(constants: &Constants) -> Mask {
        let window = constants.u32(Constant::Window);
        Mask {
            window: window.filter(|&keys| keys > 0),
        }
    }

    /// The slots that a row sees.
    pub fn seen(&self, row: &Row) -> Range<usize> {
        let length = if row.is_active() { row.length } else { 0 };
        let begin = self
            .window
            .map_or(0, |window| length.saturating_sub(window));
        begin as usize..length as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(row: Row, constants: &Constants) -> Vec<usize> {
        Mask::new(constants).seen(&row).collect()
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
}
