//! Cosines and sines for RoPE, kept from one layer to the next.
//!
//! All layers of a kind turn by the same angles. Computing sines costs more than turning the heads of
//! a token, so a thread keeps the two sets that it made last, with all that they depend on.

use std::ops::Range;

use akunu_kernels::kernel::rope::{Frequencies, Style};

/// What a set of angles depends on.
#[derive(Clone, PartialEq, Default)]
struct Key {
    table: Vec<f32>,
    theta: f32,
    scale: f32,
    head_dim: usize,
    positions: Range<i64>,
    is_interleaved: bool,
}

#[derive(Default)]
struct Set {
    key: Key,
    /// For each position all cosines, then all sines.
    turns: Vec<f32>,
}

/// The sets that were made last.
#[derive(Default)]
pub(crate) struct Rotations {
    sets: [Set; 2],
    /// The older one.
    oldest: usize,
}

/// One position: the factors of a head's elements.
///
/// Split halves have a cosine and a sine for each pair. Interleaved pairs have one for each element,
/// and the sine of the first of a pair is negative, so that an element is
/// `x * cosine + neighbour * sine`.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub cosines: &'a [f32],
    pub sines: &'a [f32],
    pub style: Style,
}

/// The turns of some positions.
#[derive(Clone, Copy)]
pub(crate) struct Turns<'a> {
    turns: &'a [f32],
    first: i64,
    width: usize,
    style: Style,
}

impl<'a> Turns<'a> {
    /// The turn of one of the positions.
    pub fn at(&self, position: i64) -> Turn<'a> {
        let row = (position - self.first) as usize;
        let both = &self.turns[2 * self.width * row..][..2 * self.width];
        let (cosines, sines) = both.split_at(self.width);
        Turn {
            cosines,
            sines,
            style: self.style,
        }
    }
}

impl Rotations {
    /// The turns of these positions.
    pub fn of(
        &mut self,
        frequencies: &Frequencies,
        positions: Range<i64>,
        style: Style,
    ) -> Turns<'_> {
        let is_interleaved = style == Style::Interleaved;
        let pairs = frequencies.head_dim / 2;
        let is_it = |set: &Set| {
            let key = &set.key;
            key.positions == positions
                && key.is_interleaved == is_interleaved
                && key.head_dim == frequencies.head_dim
                && (key.theta, key.scale) == (frequencies.theta, frequencies.scale)
                && key.table == *frequencies.table.unwrap_or(&[])
        };
        let found = self.sets.iter().position(is_it);
        let at = found.unwrap_or(self.oldest);
        if found.is_none() {
            self.oldest = 1 - self.oldest;
            let set = &mut self.sets[at];
            set.key.table.clear();
            set.key
                .table
                .extend_from_slice(frequencies.table.unwrap_or(&[]));
            set.key = Key {
                table: std::mem::take(&mut set.key.table),
                theta: frequencies.theta,
                scale: frequencies.scale,
                head_dim: frequencies.head_dim,
                positions: positions.clone(),
                is_interleaved,
            };
            fill(&mut set.turns, frequencies, positions.clone(), style);
        }
        Turns {
            turns: &self.sets[at].turns,
            first: positions.start,
            width: if is_interleaved { 2 * pairs } else { pairs },
            style,
        }
    }
}

fn fill(turns: &mut Vec<f32>, frequencies: &Frequencies, positions: Range<i64>, style: Style) {
    turns.clear();
    let pairs = frequencies.head_dim / 2;
    for position in positions {
        let start = turns.len();
        let width = match style {
            Style::Interleaved => 2 * pairs,
            Style::SplitHalves => pairs,
        };
        turns.resize(start + 2 * width, 0.0);
        let (cosines, sines) = turns[start..].split_at_mut(width);
        for d in 0..pairs {
            let (cosine, sine) = frequencies.rotation(position as f32, d);
            match style {
                Style::Interleaved => {
                    (cosines[2 * d], cosines[2 * d + 1]) = (cosine, cosine);
                    (sines[2 * d], sines[2 * d + 1]) = (-sine, sine);
                }
                Style::SplitHalves => (cosines[d], sines[d]) = (cosine, sine),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set that was kept for other positions, another table or another style would be wrong here.
    #[test]
    fn kept_sets_are_those_that_were_asked_for() {
        let mut rotations = Rotations::default();
        let tables = [vec![1.0, 10.0], vec![1.0, 7.0]];
        for round in 0..3 {
            for table in &tables {
                for style in [Style::Interleaved, Style::SplitHalves] {
                    let frequencies = Frequencies {
                        table: Some(table),
                        theta: 1e4,
                        scale: 1.0,
                        head_dim: 4,
                    };
                    let turns = rotations.of(&frequencies, round..round + 2, style);
                    let turn = turns.at(round + 1);
                    let (cosine, sine) = frequencies.rotation(round as f32 + 1.0, 1);
                    let found = match style {
                        Style::Interleaved => (turn.cosines[2], turn.sines[3]),
                        Style::SplitHalves => (turn.cosines[1], turn.sines[1]),
                    };
                    assert_eq!(found, (cosine, sine));
                }
            }
        }
    }
}
