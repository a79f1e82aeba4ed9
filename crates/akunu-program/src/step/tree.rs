//! Rows that are a tree: several continuations of one text in one step.
//!
//! ```text
//! slot     8 9 10 11 12        the rows of a sequence in the step, in this order
//! token    a b c  d  e         c follows b; d and e are the branch that follows a
//! hidden   0 0 0  2  2         d does not see 9 and 10, nor does e
//! ```
//!
//! The *parent* of a row is the last row before it, of its sequence and in the step, that it sees. A row must see exactly
//! itself, its parent and what its parent sees. So a row is never seen without all that it follows, and what a row computes
//! is what it would compute in a text of its own branch.

use akunu_types::params::Row;

use super::error::RowError;

/// The rows of a step.
pub(super) struct Trees<'a> {
    /// Rows whose sequences may have several, in ascending slots.
    pub singles: &'a [Row],
    /// Rows that follow each other.
    pub run: &'a [Row],
    /// Rounds of the step.
    pub steps: u32,
    /// The smallest window of a layer.
    pub window: Option<u32>,
}

impl Trees<'_> {
    /// Proves that what rows hide makes trees of them.
    pub fn check(&self) -> Result<(), RowError> {
        let hides = |row: &Row| row.hidden != 0 && row.is_active();
        if let Some(at) = self.run.iter().position(hides) {
            let (row, at) = (&self.run[at], self.singles.len() + at);
            return Err(refused(at, row, "rows of a run follow each other"));
        }
        if !self.singles.iter().any(hides) {
            return Ok(());
        }
        let active = self.singles.iter().enumerate();
        for (at, row) in active.filter(|(_, row)| row.is_active()) {
            let before = self.singles[..at].iter();
            let before = before.filter(|other| other.is_active() && other.sequence == row.sequence);
            let checked = match row.hidden {
                0 => Ok(()),
                _ => self.check_hidden(row, before.clone()),
            };
            let checked = checked.and_then(|()| check_parent(row, before));
            checked.map_err(|why| refused(at, row, why))?;
        }
        Ok(())
    }

    /// Proves that a row hides rows of this step only, and stands where its text has it.
    fn check_hidden<'r>(
        &self,
        row: &'r Row,
        before: impl Iterator<Item = &'r Row> + Clone,
    ) -> Result<(), &'static str> {
        if self.steps > 1 {
            return Err("a tree has one round");
        }
        if row.length != row.slot.saturating_add(1) {
            return Err("it does not end with its own slot");
        }
        // Images before the tree may take fewer positions than slots.
        let mut others = before.clone().chain([row]);
        let offset = others.next().and_then(position_offset);
        if offset.is_none() || offset != position_offset(row) {
            return Err(
                "its position does not follow from the number of slots that it sees before its own",
            );
        }
        let in_step = before.fold(0, |bits, other| bits | bit(row, other.slot));
        if row.hidden & !in_step != 0 {
            return Err("it hides a slot that no row before it in the step has");
        }
        // A window that began behind a hidden slot would hold fewer keys than it should.
        let first_hidden = row.length - (u32::BITS - row.hidden.leading_zeros());
        let n_before = row.length - row.hidden.count_ones();
        let begin = (self.window).map_or(0, |window| n_before.saturating_sub(window));
        if begin > first_hidden {
            return Err("its window begins within the tree");
        }
        Ok(())
    }
}

/// Proves that a row sees what its parent sees, given the rows of its sequence before it in the step.
fn check_parent<'r>(
    row: &Row,
    before: impl DoubleEndedIterator<Item = &'r Row> + Clone,
) -> Result<(), &'static str> {
    let sees = |row: &Row, other: &Row| row.hidden & bit(row, other.slot) == 0;
    let Some(parent) = before.clone().rfind(|other| sees(row, other)) else {
        return Ok(());
    };
    let mut ancestors = before.filter(|other| other.slot < parent.slot);
    match ancestors.all(|other| sees(row, other) == sees(parent, other)) {
        true => Ok(()),
        false => Err("it does not see what its parent sees"),
    }
}

/// The number of slots that a row sees before its own, minus its position.
fn position_offset(row: &Row) -> Option<u32> {
    let seen = row.slot.checked_sub(row.hidden.count_ones())?;
    seen.checked_sub(row.position)
}

/// The bit of a slot in what a row hides; 0 where it has none.
fn bit(row: &Row, slot: u32) -> u32 {
    match (row.length.wrapping_sub(1)).wrapping_sub(slot) {
        back @ 1..31 => 1 << back,
        _ => 0,
    }
}

fn refused(row: usize, of: &Row, why: &'static str) -> RowError {
    RowError::Tree {
        row: row as u32,
        sequence: of.sequence,
        why,
    }
}
