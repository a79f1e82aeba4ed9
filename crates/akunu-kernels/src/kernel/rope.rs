//! Rotary position embedding, alone and fused with the storing of keys and values.
//!
//! Pair d of a head turns by `angle = position * freq_scale / divisor[d]`, where
//! `divisor[d] = theta ^ (2d / turned_dim)`, or comes from a table that the host computed in f64 and that
//! has the model's own scaling factors in it ([`akunu_types::rope`]). With [`Constant::TurnedDim`] only the first elements of a
//! head turn: the divisors of the other pairs are infinite.
//!
//! With [`Constant::KeyCentre`] turned keys are stored less a vector c, their centre, one for each key head. It changes nothing but
//! what rounding loses: `q · (k - c) = q · k - q · c`, and softmax does not see what all scores of a query have in common.

pub mod head_norm_rope_neox_store;
#[allow(
    clippy::module_inception,
    reason = "the kernel is named as its family, and its file as the kernel"
)]
pub mod rope;
pub mod rope_axes;
pub mod rope_store;
pub mod scale_queries;
pub mod turn_heads;

#[cfg(feature = "testing")]
pub(crate) mod cases;

use akunu_program::Pairing;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::{Constant, Constants};
use crate::extent::product;
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::table::{Args, Launch, usual_threads};

/// How fast each pair of a head turns.
#[derive(Clone, Copy, Debug)]
pub struct Frequencies<'a> {
    /// The divisors, where a table is bound.
    pub table: Option<&'a [f32]>,
    /// Base of the frequencies, where none is.
    pub theta: f32,
    /// Scale of all positions.
    pub scale: f32,
    /// Elements of a head.
    pub head_dim: usize,
    /// Those of them that turn.
    pub turned_dim: usize,
}

impl Frequencies<'_> {
    /// Cosine and sine of pair d at a position.
    pub fn rotation(&self, position: f32, d: usize) -> (f32, f32) {
        let divisor = match self.table {
            Some(table) => table[d],
            None if 2 * d < self.turned_dim => {
                self.theta.powf((2 * d) as f32 / self.turned_dim as f32)
            }
            None => f32::INFINITY,
        };
        let angle = position * self.scale / divisor;
        (angle.cos(), angle.sin())
    }

    /// A head turned to a position.
    pub fn turn(&self, head: &[f32], position: f32, pairing: Pairing) -> Vec<f32> {
        let mut turned = head.to_vec();
        for d in 0..self.head_dim / 2 {
            let (a, b) = pairing.pair(d, self.turned_dim);
            let (cosine, sine) = self.rotation(position, d);
            turned[a] = head[a] * cosine - head[b] * sine;
            turned[b] = head[a] * sine + head[b] * cosine;
        }
        turned
    }
}

/// Which projection a head belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Projection {
    Query,
    Key,
}

/// The norms of single heads: their parts before and after a head turns.
struct HeadNorm<'a> {
    /// Weights of q and of k.
    weights: [&'a [f32]; 2],
    eps: f32,
    turn_first: bool,
}

impl HeadNorm<'_> {
    fn weight(&self, projection: Projection) -> &[f32] {
        let [q, k] = self.weights;
        match projection {
            Projection::Query => q,
            Projection::Key => k,
        }
    }

    fn before(&self, head: &[f32], projection: Projection) -> Vec<f32> {
        let mut normal = vec![0.0; head.len()];
        let ones = vec![1.0; head.len()];
        let weight = match self.turn_first {
            true => &ones,
            false => self.weight(projection),
        };
        rmsnorm(head, weight, self.eps, &mut normal);
        normal
    }

    fn after(&self, turned: &mut [f32], projection: Projection) {
        if self.turn_first && projection == Projection::Query {
            let weights = self.weight(projection);
            turned.iter_mut().zip(weights).for_each(|(x, w)| *x *= w);
        }
    }
}

/// Elements of a head that turn.
pub fn turned_dim(constants: &Constants, head_dim: u32) -> u32 {
    constants.u32(Constant::TurnedDim).unwrap_or(head_dim)
}

/// Whether a head can turn so many elements.
pub(super) fn can_turn(args: &Args, head_dim: u32) -> bool {
    let turned = turned_dim(args.constants, head_dim);
    turned.is_multiple_of(2) && turned <= head_dim
}

/// The divisors of the table, where one is bound.
pub(super) fn table_len(args: &Args, head_dim: u32) -> usize {
    if args.constants.bool(Constant::FreqTable) {
        head_dim as usize / 2
    } else {
        0
    }
}

/// The elements of the centres, (n_kv_heads, head_dim), where they are bound.
pub(super) fn centre_len(args: &Args, n_kv_heads: u32, head_dim: u32) -> usize {
    if args.constants.bool(Constant::KeyCentre) {
        product(&[n_kv_heads, head_dim])
    } else {
        0
    }
}

/// What is subtracted from the turned keys of a head: its centre, if there are any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Centre<'a>(Option<&'a [f32]>);

impl<'a> Centre<'a> {
    /// Of a buffer with the centres of all heads: empty, where none are bound.
    pub(super) fn of(centres: &'a [f32], head: usize, head_dim: usize) -> Centre<'a> {
        Centre(centres.get(head * head_dim..(head + 1) * head_dim))
    }

    /// The key less the centre.
    pub(super) fn subtract(self, key: &[f32]) -> Vec<f32> {
        self.with(key, |x, c| x - c)
    }

    /// The key that was stored.
    pub(super) fn add(self, key: &[f32]) -> Vec<f32> {
        self.with(key, |x, c| x + c)
    }

    fn with(self, key: &[f32], change: impl Fn(f32, f32) -> f32) -> Vec<f32> {
        match self.0 {
            Some(centre) => (key.iter().zip(centre))
                .map(|(&x, &c)| change(x, c))
                .collect(),
            None => key.to_vec(),
        }
    }
}

/// A thread for each pair of a row, 256 a threadgroup or what the chip allows, and `n_rows` rows.
fn pair_launch(n_heads: u32, head_dim: u32, n_rows: u32, chip: &ChipConfig) -> Launch {
    let threads = usual_threads(chip);
    let pairs = u64::from(n_heads) * u64::from(head_dim / 2);
    let groups = u32::try_from(pairs.div_ceil(threads.into())).unwrap_or(0);
    Launch::new([groups, n_rows, 1], [threads, 1, 1])
}

/// A threadgroup for each head and row, a thread for each pair in whole SIMD groups. A head that does not
/// fit gets an empty grid, which the plan check refuses.
pub(super) fn head_launch(n_heads: u32, head_dim: u32, n_rows: u32, max_threads: u32) -> Launch {
    let pairs = head_dim / 2;
    let fits = (1..=max_threads).contains(&pairs);
    let threads = pairs.clamp(1, max_threads);
    Launch::new(
        [if fits { n_heads } else { 0 }, n_rows, 1],
        [threads.next_multiple_of(SIMD_WIDTH), 1, 1],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turning keeps the length of each pair and turns pair 0 by one radian a position.
    #[test]
    fn a_turn_keeps_lengths_and_styles_differ_only_in_the_pairing() {
        let frequencies = Frequencies {
            table: None,
            theta: 10000.0,
            scale: 1.0,
            head_dim: 4,
            turned_dim: 4,
        };
        let turned = frequencies.turn(&[1.0, 0.0, 0.0, 2.0], 1.0, Pairing::Interleaved);
        assert!((turned[0] - 1f32.cos()).abs() < 1e-6 && (turned[1] - 1f32.sin()).abs() < 1e-6);
        assert!((turned[2].hypot(turned[3]) - 2.0).abs() < 1e-6);
        let split = frequencies.turn(&[1.0, 0.0, 0.0, 2.0], 1.0, Pairing::Halves);
        assert!((split[0] - 1f32.cos()).abs() < 1e-6 && (split[2] - 1f32.sin()).abs() < 1e-6);
    }

    /// Of eight elements the first four turn as a head of four, and the others stay.
    #[test]
    fn elements_beyond_those_that_turn_stay() {
        let head = [0.5, -1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 7.0];
        let whole = Frequencies {
            table: None,
            theta: 10000.0,
            scale: 1.0,
            head_dim: 4,
            turned_dim: 4,
        };
        let part = Frequencies {
            head_dim: 8,
            ..whole
        };
        for pairing in [Pairing::Interleaved, Pairing::Halves] {
            let turned = part.turn(&head, 7.0, pairing);
            assert_eq!(turned[..4], whole.turn(&head[..4], 7.0, pairing));
            assert_eq!(turned[4..], head[4..]);
        }
    }
}
