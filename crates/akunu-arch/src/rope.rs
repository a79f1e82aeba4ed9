//! Rotary positions: which angle a pair turns by.
//!
//! Pair d of a head turns by `position * freq_scale / divisor[d]` with
//! `divisor[d] = theta ^ (2d / head_dim) * factor[d]`.

use akunu_types::rope;

/// Factors of the divisors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeFactors {
    /// No scaling.
    None,
    /// The weight `rope_freqs` holds them.
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
}

/// Which elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Elements 2d and 2d + 1.
    Interleaved,
    /// Elements d and d + head_dim / 2.
    SplitHalves,
}

/// The rotary positions of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Which elements of a head turn together.
    pub pairing: Pairing,
    /// Base of the frequencies.
    pub theta: f32,
    /// Linear scaling of positions, `1 / factor`.
    pub freq_scale: f32,
    /// Factors of the divisors.
    pub factors: RopeFactors,
}

impl Rope {
    /// The divisors for a head of `head_dim`. `weight` is the weight `rope_freqs`, which
    /// [`RopeFactors::Weight`] needs; missing entries count as 1.
    pub fn divisors(&self, head_dim: u32, weight: &[f32]) -> Vec<f32> {
        rope::divisors(f64::from(self.theta), head_dim, |d, divisor| {
            match self.factors {
                RopeFactors::None => 1.0,
                RopeFactors::Weight => weight.get(d).map_or(1.0, |&f| f64::from(f)),
                RopeFactors::Llama3 { .. } => self.llama3_factor(divisor),
            }
        })
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
        theta: 10_000.0,
        freq_scale: 1.0,
        factors: RopeFactors::None,
    };

    #[test]
    fn divisors_are_powers_of_the_base() {
        let divisors = PLAIN.divisors(8, &[]);
        assert_eq!(divisors, [1.0, 10.0, 100.0, 1000.0]);
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
}
