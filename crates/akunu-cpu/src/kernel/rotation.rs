//! Cosines and sines for RoPE, kept from one layer to the next.
//!
//! All layers of a kind turn by the same angles. Computing sines costs more than turning the heads of
//! a token, so a thread keeps the two sets that it made last, with all that they depend on. A set is for a list of
//! positions: those of a prompt follow each other, those of a batch are as far as each sequence is.

use akunu_kernels::kernel::rope::Frequencies;
use akunu_program::Pairing;

/// What a set of angles depends on.
#[derive(Default)]
struct Key {
    table: Vec<f32>,
    theta: f32,
    scale: f32,
    head_dim: usize,
    turned_dim: usize,
    positions: Vec<i64>,
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
/// Split halves have a cosine and a sine for each pair that turns. Interleaved pairs have one for each element,
/// and the sine of the first of a pair is negative, so that an element is
/// `x * cosine + neighbour * sine`.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub cosines: &'a [f32],
    pub sines: &'a [f32],
    pub pairing: Pairing,
}

/// The turns of some positions.
#[derive(Clone, Copy)]
pub(crate) struct Turns<'a> {
    turns: &'a [f32],
    width: usize,
    pairing: Pairing,
}

impl<'a> Turns<'a> {
    /// The turn of the position that was asked for at this place.
    pub fn at(&self, place: usize) -> Turn<'a> {
        let both = &self.turns[2 * self.width * place..][..2 * self.width];
        let (cosines, sines) = both.split_at(self.width);
        Turn {
            cosines,
            sines,
            pairing: self.pairing,
        }
    }
}

impl Rotations {
    /// The turns of these positions, in their order.
    pub fn of(
        &mut self,
        frequencies: &Frequencies,
        positions: impl Iterator<Item = i64> + Clone,
        pairing: Pairing,
    ) -> Turns<'_> {
        let found = (self.sets.iter()).position(|set| {
            set.key.is(frequencies, pairing)
                && positions.clone().eq(set.key.positions.iter().copied())
        });
        let at = found.unwrap_or(self.oldest);
        if found.is_none() {
            self.oldest = 1 - self.oldest;
            self.sets[at].make(frequencies, positions, pairing);
        }
        Turns {
            turns: &self.sets[at].turns,
            width: width(frequencies, pairing),
            pairing,
        }
    }
}

impl Key {
    /// Whether it has these frequencies and this pairing.
    fn is(&self, frequencies: &Frequencies, pairing: Pairing) -> bool {
        self.is_interleaved == (pairing == Pairing::Interleaved)
            && (self.head_dim, self.turned_dim) == (frequencies.head_dim, frequencies.turned_dim)
            && (self.theta, self.scale) == (frequencies.theta, frequencies.scale)
            && self.table == *frequencies.table.unwrap_or(&[])
    }
}

impl Set {
    /// Computes the turns. The memory of those before is used again.
    fn make(
        &mut self,
        frequencies: &Frequencies,
        positions: impl Iterator<Item = i64>,
        pairing: Pairing,
    ) {
        let key = &mut self.key;
        key.table.clear();
        key.table
            .extend_from_slice(frequencies.table.unwrap_or(&[]));
        (key.theta, key.scale) = (frequencies.theta, frequencies.scale);
        (key.head_dim, key.turned_dim) = (frequencies.head_dim, frequencies.turned_dim);
        key.is_interleaved = pairing == Pairing::Interleaved;
        key.positions.clear();
        key.positions.extend(positions);
        self.turns.clear();
        for &position in &key.positions {
            push_turn(&mut self.turns, frequencies, position, pairing);
        }
    }
}

/// Cosines of one position.
fn width(frequencies: &Frequencies, pairing: Pairing) -> usize {
    let pairs = frequencies.turned_dim / 2;
    match pairing {
        Pairing::Interleaved => 2 * pairs,
        Pairing::Halves => pairs,
    }
}

/// Appends the cosines and sines of a position.
fn push_turn(turns: &mut Vec<f32>, frequencies: &Frequencies, position: i64, pairing: Pairing) {
    let (start, width) = (turns.len(), width(frequencies, pairing));
    turns.resize(start + 2 * width, 0.0);
    let (cosines, sines) = turns[start..].split_at_mut(width);
    for d in 0..frequencies.turned_dim / 2 {
        let (cosine, sine) = frequencies.rotation(position as f32, d);
        match pairing {
            Pairing::Interleaved => {
                (cosines[2 * d], cosines[2 * d + 1]) = (cosine, cosine);
                (sines[2 * d], sines[2 * d + 1]) = (-sine, sine);
            }
            Pairing::Halves => (cosines[d], sines[d]) = (cosine, sine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set that was kept for other positions, another table or another pairing would be wrong here.
    #[test]
    fn kept_sets_are_those_that_were_asked_for() {
        let mut rotations = Rotations::default();
        let tables = [vec![1.0, 10.0], vec![1.0, 7.0]];
        for round in 0..3 {
            for table in &tables {
                for pairing in [Pairing::Interleaved, Pairing::Halves] {
                    let frequencies = Frequencies {
                        table: Some(table),
                        theta: 1e4,
                        scale: 1.0,
                        head_dim: 4,
                        turned_dim: 4,
                    };
                    let positions = [9, 4 + round];
                    let turns = rotations.of(&frequencies, positions.into_iter(), pairing);
                    let turn = turns.at(1);
                    let (cosine, sine) = frequencies.rotation(4.0 + round as f32, 1);
                    let found = match pairing {
                        Pairing::Interleaved => (turn.cosines[2], turn.sines[3]),
                        Pairing::Halves => (turn.cosines[1], turn.sines[1]),
                    };
                    assert_eq!(found, (cosine, sine));
                }
            }
        }
    }
}
