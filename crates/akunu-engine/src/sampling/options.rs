//! Sampling options that may be unset, and the range of each value.
//!
//! Options are laid over a complete [`Sampling`], so that several can be stacked: those of a user over those that a model's
//! files suggest, over what suits the program.
//!
//! ```text
//! user         temperature 0.7
//! model                          top_k 20
//! program      temperature 0.1   top_k 40   top_p 0.95
//! ────────────────────────────────────────────────────
//! result       temperature 0.7   top_k 20   top_p 0.95
//! ```
//!
//! Temperature 0 means the most likely token, so nothing below it may change which token that is: over temperature 0, only
//! the seed of what lies below is kept.

use super::Sampling;
use crate::error::EngineError;

/// The numbers that a value may have.
struct Range {
    /// In words, to follow "it must be".
    wanted: &'static str,
    holds: fn(f64) -> bool,
}

const ANY: Range = Range {
    wanted: "a number",
    holds: |_| true,
};
const NOT_NEGATIVE: Range = Range {
    wanted: "a number 0 or more",
    holds: |x| x >= 0.0,
};
const POSITIVE: Range = Range {
    wanted: "a number above 0",
    holds: |x| x > 0.0,
};
const FROM_ONE: Range = Range {
    wanted: "a number 1 or more",
    holds: |x| x >= 1.0,
};
const SHARE: Range = Range {
    wanted: "a number from 0 to 1",
    holds: |x| (0.0..=1.0).contains(&x),
};
const SUM: Range = Range {
    wanted: "a number above 0 and at most 1",
    holds: |x| x > 0.0 && x <= 1.0,
};
const COUNT: Range = Range {
    wanted: "a whole number from 0 to 4294967295",
    holds: is_count,
};
const COUNT_FROM_ONE: Range = Range {
    wanted: "a whole number from 1 to 4294967295",
    holds: |x| is_count(x) && x >= 1.0,
};
/// Whole numbers that a double has exactly.
const SEED: Range = Range {
    wanted: "a whole number from 0 to 2^53",
    holds: |x| x.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&x),
};

const YES_OR_NO: Range = Range {
    wanted: "0 or 1",
    holds: |x| x == 0.0 || x == 1.0,
};

/// A value that can be set by a number in its range.
trait FromNumber {
    fn from_number(number: f64) -> Self;
}

impl FromNumber for f32 {
    fn from_number(number: f64) -> f32 {
        number as f32
    }
}

impl FromNumber for u32 {
    fn from_number(number: f64) -> u32 {
        number as u32
    }
}

impl FromNumber for bool {
    fn from_number(number: f64) -> bool {
        number != 0.0
    }
}

fn is_count(x: f64) -> bool {
    x.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&x)
}

impl Range {
    fn check(&self, option: &'static str, found: f64) -> Result<f64, EngineError> {
        if found.is_finite() && (self.holds)(found) {
            return Ok(found);
        }
        Err(EngineError::Sampling {
            option,
            found: found as f32,
            wanted: self.wanted,
        })
    }
}

/// The fields of [`Sampling`] but for the seed, the type of each, and its range.
macro_rules! sampling_options {
    ($($name:ident: $kind:ty, $range:ident;)*) => {
        /// How tokens are chosen; `None` for values that are not set.
        ///
        /// ```
        /// use akunu_engine::{Sampling, SamplingOptions};
        ///
        /// let said = SamplingOptions { temperature: Some(0.7), ..SamplingOptions::default() };
        /// let sampling = said.over(Sampling { top_k: 20, ..Sampling::greedy() });
        /// assert_eq!((sampling.temperature, sampling.top_k), (0.7, 20));
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct SamplingOptions {
            $(
                #[doc = concat!("[`Sampling::", stringify!($name), "`]")]
                pub $name: Option<$kind>,
            )*
            /// [`Sampling::seed`]
            pub seed: Option<u64>,
            /// Makes room for further options.
            #[doc(hidden)]
            pub _more: (),
        }

        impl SamplingOptions {
            /// The name of each option, which is that of its field.
            pub const NAMES: &[&str] = &[$(stringify!($name),)* "seed"];

            /// The values that are set, and those of `other` for the rest. Temperature 0 takes only the seed of `other`:
            /// it always means the most likely token, unless penalties are set here too.
            pub fn over(&self, other: Sampling) -> Sampling {
                let other = match self.temperature {
                    Some(0.0) => Sampling { seed: other.seed, ..Sampling::greedy() },
                    _ => other,
                };
                Sampling {
                    $($name: self.$name.unwrap_or(other.$name),)*
                    seed: self.seed.unwrap_or(other.seed),
                    _more: (),
                }
            }

            /// Sets an option by its name. A value outside of its range or an unknown name is an error and changes nothing.
            pub fn set(&mut self, name: &str, value: f64) -> Result<(), EngineError> {
                match name {
                    $(stringify!($name) => {
                        let number = $range.check(stringify!($name), value)?;
                        self.$name = Some(<$kind>::from_number(number));
                    })*
                    "seed" => self.seed = Some(SEED.check("seed", value)? as u64),
                    _ => {
                        let (name, known) = (name.to_string(), Self::NAMES);
                        return Err(EngineError::UnknownSampling { name, known });
                    }
                }
                Ok(())
            }

            /// The values that are set, and those of `other` where they are not.
            #[must_use]
            pub fn or(self, other: SamplingOptions) -> SamplingOptions {
                SamplingOptions {
                    $($name: self.$name.or(other.$name),)*
                    seed: self.seed.or(other.seed),
                    _more: (),
                }
            }

            /// The values that are set and in their range.
            pub(crate) fn in_range(self) -> SamplingOptions {
                let holds = |range: &Range, x: f64| x.is_finite() && (range.holds)(x);
                SamplingOptions {
                    $($name: self.$name.filter(|x| holds(&$range, f64::from(*x))),)*
                    seed: self.seed,
                    _more: (),
                }
            }
        }

        impl Sampling {
            /// Each value but the seed, with the name of its field.
            pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> {
                [$((stringify!($name), f64::from(self.$name)),)*].into_iter()
            }

            /// Refuses a value that is out of its range.
            pub(crate) fn check(&self) -> Result<(), EngineError> {
                $($range.check(stringify!($name), f64::from(self.$name))?;)*
                Ok(())
            }
        }
    };
}

sampling_options! {
    temperature: f32, NOT_NEGATIVE;
    top_k: u32, COUNT;
    top_p: f32, SUM;
    min_p: f32, SHARE;
    repetition_penalty: f32, POSITIVE;
    penalty_window: u32, COUNT;
    penalise_prompt: bool, YES_OR_NO;
    frequency_penalty: f32, ANY;
    presence_penalty: f32, ANY;
    dry_multiplier: f32, NOT_NEGATIVE;
    dry_base: f32, FROM_ONE;
    dry_allowed_length: u32, COUNT_FROM_ONE;
    dry_window: u32, COUNT;
    top_n_sigma: f32, NOT_NEGATIVE;
    typical_p: f32, SUM;
    xtc_probability: f32, SHARE;
    xtc_threshold: f32, SHARE;
    dynamic_range: f32, NOT_NEGATIVE;
    dynamic_exponent: f32, POSITIVE;
    mirostat_tau: f32, NOT_NEGATIVE;
    mirostat_eta: f32, SHARE;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when two names have one field, a name has none, or a value is laid under instead of over.
    #[test]
    fn every_option_can_be_set_and_changes_its_own_value() {
        let plain = Sampling::greedy();
        for name in SamplingOptions::NAMES {
            // 1 is what some values are anyway, and 0.5 is not a whole number.
            for value in [1.0, 7.0, 0.5] {
                let mut said = SamplingOptions::default();
                if said.set(name, value).is_err() {
                    continue;
                }
                let changed = said.over(plain);
                let mut values = changed.values().zip(plain.values());
                assert!(values.all(|(now, before)| now == before || now == (*name, value)));
                if *name == "seed" {
                    assert_eq!(changed.seed, value as u64);
                } else {
                    assert!(changed.values().any(|now| now == (*name, value)), "{name}");
                }
            }
        }
    }

    /// Fails if temperature 0 keeps what could make another token than the most likely one win.
    #[test]
    fn temperature_0_takes_the_most_likely_token_whatever_lies_below() {
        let below = Sampling {
            temperature: 0.7,
            repetition_penalty: 1.1,
            dry_multiplier: 0.8,
            seed: 5,
            ..Sampling::greedy()
        };
        let greedy = SamplingOptions {
            temperature: Some(0.0),
            ..SamplingOptions::default()
        };
        let wanted = Sampling {
            seed: 5,
            ..Sampling::greedy()
        };
        assert_eq!(greedy.over(below), wanted);
        let penalised = SamplingOptions {
            repetition_penalty: Some(1.3),
            ..greedy
        };
        assert_eq!(penalised.over(below).repetition_penalty, 1.3);
    }

    /// Breaks when the second options win over the first, or are lost.
    #[test]
    fn the_first_options_win_and_the_others_fill_the_gaps() {
        for name in SamplingOptions::NAMES {
            let (mut first, mut second) = (SamplingOptions::default(), SamplingOptions::default());
            first.set(name, 1.0).expect("in every range");
            assert_eq!(second.or(first), first, "{name}");
            assert_eq!(first.or(second), first, "{name}");
            if second.set(name, 2.0).or(second.set(name, 0.5)).is_ok() {
                assert_ne!(first, second, "{name}");
                assert_eq!(first.or(second), first, "{name}");
            }
        }
    }

    /// Breaks when a wrong value is rounded or cut instead of refused.
    #[test]
    fn wrong_values_are_refused_and_nothing_is_set() {
        let mut said = SamplingOptions::default();
        for (name, value) in [
            ("top_k", 0.5),
            ("top_k", 5e9),
            ("top_p", 0.0),
            ("min_p", 1.5),
            ("temperature", f64::NAN),
            ("presence_penalty", f64::INFINITY),
            ("dry_allowed_length", 0.0),
            ("penalise_prompt", 2.0),
            ("seed", -1.0),
        ] {
            let refused = said.set(name, value).expect_err(name).to_string();
            assert!(
                refused.starts_with(name) && refused.contains("must be"),
                "{refused}"
            );
        }
        let unknown = said.set("heat", 1.0).expect_err("no such name").to_string();
        assert!(
            unknown.contains("heat") && unknown.contains("mirostat_eta"),
            "{unknown}"
        );
        assert_eq!(said, SamplingOptions::default());
    }
}
