//! How a row's position enters what is computed of it.

use crate::buffer::Slice;

/// Which elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Pairs of neighbours: elements 2i and 2i + 1.
    Interleaved,
    /// An element of the first half of those that turn and its counterpart in the second. Others are pairs of neighbours.
    Halves,
}

impl Pairing {
    /// The two elements of pair `d`, where the first `turned_dim` elements of a head turn.
    pub fn pair(self, d: usize, turned_dim: usize) -> (usize, usize) {
        match self {
            Pairing::Halves if d < turned_dim / 2 => (d, d + turned_dim / 2),
            Pairing::Halves | Pairing::Interleaved => (2 * d, 2 * d + 1),
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
    /// Elements of a head that turn, from its first on, an even number.
    pub turned_dim: u32,
    /// What each pair's position is divided by, (head_dim / 2); infinite for pairs that do not turn.
    pub divisors: Slice,
}

/// The axes that pairs turn by: time, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    /// Pairs of each axis, in this order.
    pub pairs: [u32; 3],
    /// Whether the pairs of the axes take turns, as long as height and width have some. Otherwise those of an axis follow each other.
    pub is_interleaved: bool,
}

/// What chooses the entry of a learned table that a row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnedBy {
    /// Its position; one beyond the table takes the last entry.
    Position,
    /// Whether it is of the second text of a pair: entry 0 or 1.
    Kind,
}
