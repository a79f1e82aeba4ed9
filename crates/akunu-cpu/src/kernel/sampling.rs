//! From logits to a token, for some rows of logits at once.
//!
//! The greedy choice is shared by parts of the logits of all rows. Everything else is shared by rows, so that a row is
//! added up in the same order however many threads there are.

mod advance;
mod argmax;
mod bitmask;
mod draw;
mod field;
mod noise;
mod penalties;
mod scores;
mod speech;

pub(crate) use advance::advance_rows;
pub(crate) use argmax::{argmax, argmax_partial};
pub(crate) use bitmask::grammar_bitmask;
pub(crate) use draw::draw;
pub(crate) use penalties::penalties;
pub(crate) use scores::token_scores;
pub(crate) use speech::speech_rules;

use akunu_types::params::Row;

use crate::place::Place;

/// The rows that tokens are chosen for, and where the tokens go.
struct Choices<'a> {
    /// For each row of logits its row in the table.
    outputs: &'a [u32],
    rows: &'a [Row],
    tokens: Place<'a>,
    /// (n_sequences, history_stride).
    history: Place<'a>,
    history_stride: usize,
}

impl<'a> Choices<'a> {
    /// The row whose logits are row `at`.
    fn row(&self, at: usize) -> &'a Row {
        &self.rows[self.outputs[at] as usize]
    }

    /// Stores a token where the next step and the host look for it; that of an idle row leaves no history.
    ///
    /// # Safety
    /// `own`: row `at` of the logits belongs to this part.
    unsafe fn store(&self, at: usize, token: u32) {
        let row = self.row(at);
        // SAFETY: passes on `own`; no two rows of logits are of one place in a history.
        unsafe {
            self.tokens.write(at, 1)[0] = token;
            if row.is_active() && self.history_stride > 0 {
                let first = row.sequence as usize * self.history_stride;
                let place = row.length as usize % self.history_stride;
                self.history.write(first + place, 1)[0] = token;
            }
        }
    }
}
