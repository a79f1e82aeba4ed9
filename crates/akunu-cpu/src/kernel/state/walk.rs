//! The rows of a step, and the blocks that their states are in.

use akunu_types::params::Row;

/// The rows of a step, and how many blocks there are.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub rows: &'a [Row],
    pub n_blocks: u32,
}

/// A state, or a part of one, on the way through the rows of a sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// In memory of the part's own.
    Own,
    /// In a block.
    Block(usize),
}

/// Where a piece of a state lies: its first number, and how far the next row of it is.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub first: *mut f32,
    pub stride: usize,
}

/// One row of a sequence.
pub(super) struct Step {
    pub row: usize,
    /// The state that it goes on from; zeros if there is none.
    pub from: Option<Held>,
    /// Where its own is left: for the next row, and for later steps.
    pub to: [Option<Held>; 2],
}

impl Walk<'_> {
    /// The rows of a sequence, from its first one. A state that the next row goes on from stays in the part's own memory, and is
    /// stored unless that row overwrites it.
    pub fn steps(&self, first: usize) -> impl Iterator<Item = Step> {
        let mut row = Some(first);
        let mut held = None;
        std::iter::from_fn(move || {
            let at = row?;
            row = self.next(at);
            let from = self.from(at).map(|block| match held == Some(block) {
                true => Held::Own,
                false => Held::Block(block),
            });
            let to = self.to(at);
            held = row.and_then(|next| self.from(next));
            held = held.filter(|&block| to == Some(block));
            let stored = to.filter(|_| row.is_none_or(|next| self.to(next) != to));
            Some(Step {
                row: at,
                from,
                to: [held.map(|_| Held::Own), stored.map(Held::Block)],
            })
        })
    }

    /// The block that a row goes on from.
    pub fn from(&self, at: usize) -> Option<usize> {
        self.known(self.rows[at].state_from())
    }

    /// The block that a row leaves its state in.
    pub fn to(&self, at: usize) -> Option<usize> {
        self.known(self.rows[at].state_to())
    }

    fn known(&self, block: Option<u32>) -> Option<usize> {
        let block = block.filter(|&block| block < self.n_blocks)?;
        Some(block as usize)
    }

    /// Whether an active row is the first of its sequence.
    pub fn leads(&self, at: usize) -> bool {
        let mut before = self.rows[..at].iter().rev();
        let before = before.find(|row| row.is_active());
        before.is_none_or(|row| row.sequence != self.rows[at].sequence)
    }

    /// The first rows of all sequences.
    pub fn leaders(&self) -> Vec<usize> {
        let is_first = |&at: &usize| self.rows[at].is_active() && self.leads(at);
        (0..self.rows.len()).filter(is_first).collect()
    }

    /// The next active row of the same sequence.
    pub fn next(&self, at: usize) -> Option<usize> {
        let mut behind = (at + 1..self.rows.len()).filter(|&at| self.rows[at].is_active());
        behind
            .next()
            .filter(|&next| self.rows[next].sequence == self.rows[at].sequence)
    }

    /// Whether a row goes on from the one right before it.
    pub fn is_next(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let [one, two] = [before, at].map(|at| &self.rows[at]);
        let is_same = one.is_active() && one.sequence == two.sequence;
        is_same && self.from(at).is_some() && self.from(at) == self.to(before)
    }
}
