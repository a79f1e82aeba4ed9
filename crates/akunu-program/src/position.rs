//! How a row's position enters what is computed of it.

use crate::buffer::Slice;

/// Which elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Pairs of neighbours: elements 2i and 2i + 1.
    Interleaved,
    /// An element of the first half and its counterpart in the second.
    Halves,
}

impl Pairing {
    /// The two elements of pair `d`.
    pub fn pair(self, d: usize, head_dim: usize) -> (usize, usize) {
        match self {
            Pairing::Interleaved => (2 * d, 2 * d + 1),
            Pairing::Halves => (d, d + head_dim / 2),
        }
    }
}

/// Rotary positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// What turns together.
    pub pairing: Pairing,
    /// Base of the frequencies.
    pub theta: f32,
    /// Linear scaling of positions.
    pub freq_scale: f32,
    /// What each pair's position is divided by, (head_dim / 2).
    pub divisors: Slice,
}

/// What chooses the entry of a learned table that a row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnedBy {
    /// Its position; one beyond the table takes the last entry.
    Position,
    /// Whether it is of the second text of a pair: entry 0 or 1.
    Kind,
}
