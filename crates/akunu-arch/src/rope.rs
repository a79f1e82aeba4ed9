//! Rotary positions: which angle a pair turns by.
//!
//! Pair d of a head turns by `position * freq_scale / divisor[d]` with
//! `divisor[d] = theta ^ (2d / turned_dim) * factor[d]`.

use akunu_types::rope;

/// Factors of the divisors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeFactors {
    /// No scaling.
    None,
    /// 1 for so many pairs, which turn as in a head that turns as a whole; the others do not turn.
    FirstPairs(u32),
    /// The weight `rope_freqs` holds them, or the model's [long-rope](crate::LongRope).
    Weight,
    /// Llama 3's rule: slow pairs are slowed down by `factor`, fast ones are not, with a smooth
    /// passage between.
    Llama3 {
        /// How much slower the slowest pairs turn.
        factor: f32,
        /// Pairs that turn less often than this in the original context are slow.
        low_freq_factor: f32,
        /// Pairs that turn more often than this in the original context are fast.
        high_freq_factor: f32,
        /// The context that the model was first trained with.
        original_context: u32,
    },
    /// YaRN: pairs that turn seldom in the original context are slowed down by `factor`, those that turn often are not, with a
    /// straight passage between.
    Yarn {
        /// How much slower the slowest pairs turn.
        factor: f32,
        /// Pairs that turn more often than this in the original context are not slowed down.
        beta_fast: f32,
        /// Pairs that turn less often than this are slowed down by the whole factor.
        beta_slow: f32,
        /// The context that the model was first trained with.
        original_context: u32,
        /// Whether the passage begins and ends at whole pairs.
        whole_pairs: bool,
    },
}

/// Which elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Elements 2d and 2d + 1.
    Interleaved,
    /// Elements d and d + turned_dim / 2.
    SplitHalves,
}

/// The rotary positions of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Which elements of a head turn together.
    pub pairing: Pairing,
    /// Elements of a head that turn, from its first on; `None` for all.
    pub turned_dim: Option<u32>,
    /// Base of the frequencies.
    pub theta: f32,
    /// Linear scaling of positions, `1 / factor`.
    pub freq_scale: f32,
    /// Factors of the divisors.
    pub factors: RopeFactors,
    /// The factor of turned queries and keys.
    pub magnitude: f32,
}

/// A factor with which no position turns a pair by an angle that a single has: converters to GGUF write it.
const NEVER: f64 = 1e30;

impl Rope {
    /// The same with pairs of neighbours.
    pub(crate) fn interleaved(self) -> Rope {
        Rope {
            pairing: Pairing::Interleaved,
            ..self
        }
    }

    /// The same without factors.
    pub(crate) fn unscaled(self) -> Rope {
        Rope {
            freq_scale: 1.0,
            factors: RopeFactors::None,
            magnitude: 1.0,
            ..self
        }
    }

    /// The divisors for a head of `head_dim`, infinite for pairs that do not turn. `weight` is the list that
    /// [`RopeFactors::Weight`] needs; missing entries count as 1.
    pub fn divisors(&self, head_dim: u32, weight: &[f32]) -> Vec<f32> {
        let turned = self.turned_dim.unwrap_or(head_dim);
        let mut divisors = self.of_turned(turned, weight);
        divisors.resize(head_dim as usize / 2, f32::INFINITY);
        divisors
    }

    fn of_turned(&self, turned: u32, weight: &[f32]) -> Vec<f32> {
        rope::divisors(f64::from(self.theta), turned, |d, divisor| {
            match self.factors {
                RopeFactors::None => 1.0,
                RopeFactors::FirstPairs(n) if d < n as usize => 1.0,
                RopeFactors::FirstPairs(_) => NEVER,
                RopeFactors::Weight => weight.get(d).map_or(1.0, |&f| f64::from(f)),
                RopeFactors::Llama3 { .. } => self.llama3_factor(divisor),
                RopeFactors::Yarn { .. } => self.yarn_factor(d, turned),
            }
        })
    }

    fn yarn_factor(&self, pair: usize, turned: u32) -> f64 {
        let RopeFactors::Yarn {
            factor,
            beta_fast,
            beta_slow,
            original_context,
            whole_pairs,
        } = self.factors
        else {
            return 1.0;
        };
        let last = f64::from(turned) - 1.0;
        // The pair that turns so often in the original context.
        let pair_of = |turns: f32| {
            let divisor = f64::from(original_context) / (f64::from(turns) * core::f64::consts::TAU);
            f64::from(turned) * divisor.ln() / (2.0 * f64::from(self.theta).ln())
        };
        let (mut low, mut high) = (pair_of(beta_fast), pair_of(beta_slow));
        if whole_pairs {
            (low, high) = (low.floor(), high.ceil());
        }
        let (low, mut high) = (low.max(0.0), high.min(last));
        if low == high {
            high += 0.001;
        }
        let slowed = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
        1.0 / (slowed / f64::from(factor) + (1.0 - slowed))
    }

    fn llama3_factor(&self, divisor: f64) -> f64 {
        let RopeFactors::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_context,
        } = self.factors
        else {
            return 1.0;
        };
        let (factor, low, high) = (
            f64::from(factor),
            f64::from(low_freq_factor),
            f64::from(high_freq_factor),
        );
        let turns = f64::from(original_context) / (core::f64::consts::TAU * divisor);
        if turns > high {
            1.0
        } else if turns < low {
            factor
        } else {
            let smooth = (turns - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Rope = Rope {
        pairing: Pairing::SplitHalves,
        turned_dim: None,
        theta: 10_000.0,
        freq_scale: 1.0,
        factors: RopeFactors::None,
        magnitude: 1.0,
    };

    #[test]
    fn divisors_are_powers_of_the_base() {
        let divisors = PLAIN.divisors(8, &[]);
        assert_eq!(divisors, [1.0, 10.0, 100.0, 1000.0]);
    }

    /// The first four elements turn as a head of four.
    #[test]
    fn pairs_that_do_not_turn_have_infinite_divisors() {
        let part = Rope {
            turned_dim: Some(4),
            ..PLAIN
        };
        let infinite = f32::INFINITY;
        assert_eq!(part.divisors(8, &[]), [1.0, 100.0, infinite, infinite]);
    }

    #[test]
    fn a_weight_multiplies_them() {
        let config = Rope {
            factors: RopeFactors::Weight,
            ..PLAIN
        };
        assert_eq!(
            config.divisors(8, &[1.0, 2.0, 4.0]),
            [1.0, 20.0, 400.0, 1000.0]
        );
    }

    /// The factors that converters write into `rope_freqs` for Llama 3.2: 1 for fast pairs, 32 for
    /// slow ones.
    #[test]
    fn llama3_slows_only_slow_pairs() {
        let factors = RopeFactors::Llama3 {
            factor: 32.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192,
        };
        let scaled = Rope {
            theta: 500_000.0,
            factors,
            ..PLAIN
        };
        let plain = Rope {
            factors: RopeFactors::None,
            ..scaled
        };
        let ratio: Vec<f32> = (scaled.divisors(64, &[]).iter().zip(plain.divisors(64, &[])))
            .map(|(a, b)| a / b)
            .collect();
        assert_eq!(ratio[0], 1.0);
        assert_eq!(ratio[31], 32.0);
        assert!(ratio.is_sorted(), "{ratio:?}");
    }

    /// The divisors of gpt-oss-20b: its first 8 pairs or so turn as before, the last are 32 times slower.
    #[test]
    fn yarn_slows_pairs_that_turn_seldom() {
        let factors = RopeFactors::Yarn {
            factor: 32.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            original_context: 4096,
            whole_pairs: false,
        };
        let scaled = Rope {
            theta: 150_000.0,
            factors,
            ..PLAIN
        };
        let plain = Rope {
            factors: RopeFactors::None,
            ..scaled
        };
        let ratio: Vec<f32> = (scaled.divisors(64, &[]).iter().zip(plain.divisors(64, &[])))
            .map(|(a, b)| a / b)
            .collect();
        assert_eq!(ratio[..9], [1.0; 9]);
        assert!(ratio[9] > 1.0 && ratio.is_sorted(), "{ratio:?}");
        assert!(ratio[18..].iter().all(|&ratio| ratio == 32.0), "{ratio:?}");
    }
}
