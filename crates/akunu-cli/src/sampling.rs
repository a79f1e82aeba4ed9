//! The options that say how tokens are chosen, and what holds without them.
//!
//! `generate` takes the most likely token, so that a script gets the same text twice. A conversation
//! that does so soon repeats itself: `chat` draws, in the way that the model's own files suggest, with
//! a seed that it tells.

use crate::terminal::{note, warn};
use akunu::{Sampling, SuggestedSampling};
use akunu_kernels::kernel::sampling::topk_select::MAX_K;
use clap::Args;

/// How tokens are chosen.
#[derive(Args)]
pub struct SamplingArgs {
    /// 0 always takes the most likely token; higher is more varied [default: 0; in chat what the model's
    /// files suggest, or 0.1]
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = temperature)]
    temp: Option<f32>,
    /// Choose among this many of the most likely tokens; 0 and more than 256 choose among 256
    /// [default: 40; in chat what the model's files suggest, or 40]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top_k: Option<u32>,
    /// Choose among the most likely tokens whose probabilities sum to this [default: 0.95; in chat what
    /// the model's files suggest, or 0.95]
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = sum_of_probabilities)]
    top_p: Option<f32>,
    /// Leave out tokens less likely than this share of the most likely one [default: 0.05; in chat what
    /// the model's files suggest, or 0.1]
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = share)]
    min_p: Option<f32>,
    /// Above 1 makes the last 64 tokens less likely [default: 1; in chat what the model's files suggest,
    /// or 1.1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = penalty)]
    repeat_penalty: Option<f32>,
    /// The same seed gives the same answer; -1 takes another one each time, and tells it [default: 0; in
    /// chat a random one, which /stats and --json tell]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<Seed>,
}

/// Where draws begin.
#[derive(Clone, Copy)]
struct Seed {
    value: u64,
    is_random: bool,
}

/// What `generate` does.
const PLAIN: Sampling = Sampling {
    top_k: 40,
    top_p: 0.95,
    min_p: 0.05,
    ..Sampling::greedy()
};

impl SamplingArgs {
    /// For a text that is the same every time, unless told otherwise.
    pub fn sampling(&self) -> Sampling {
        self.over(PLAIN)
    }

    /// For a conversation with a model that suggests this.
    pub fn for_chat(&self, suggested: &SuggestedSampling) -> Sampling {
        self.over(akunu::chat_sampling(suggested))
    }

    /// `other`, but for the options that were given. What is not exactly as asked for is told.
    fn over(&self, other: Sampling) -> Sampling {
        if let Some(seed) = self.seed.filter(|seed| seed.is_random) {
            note(&format!("seed {}", seed.value));
        }
        if let Some(top_k) = self.top_k.filter(|&top_k| top_k > MAX_K) {
            warn(&format!(
                "--top-k {top_k} acts as {MAX_K}, the most candidates that can be drawn from"
            ));
        }
        Sampling {
            temperature: self.temp.unwrap_or(other.temperature),
            top_k: self.top_k.unwrap_or(other.top_k).min(MAX_K),
            top_p: self.top_p.unwrap_or(other.top_p),
            min_p: self.min_p.unwrap_or(other.min_p),
            repetition_penalty: self.repeat_penalty.unwrap_or(other.repetition_penalty),
            seed: self.seed.map_or(other.seed, |seed| seed.value),
            ..other
        }
    }
}

/// Sets one value by the name that it has in a conversation. An error says in words what is wrong.
pub fn set(sampling: &mut Sampling, name: &str, text: &str) -> Result<(), String> {
    match name {
        "temp" => sampling.temperature = temperature(text)?,
        "top_k" => sampling.top_k = candidates(text)?,
        "top_p" => sampling.top_p = sum_of_probabilities(text)?,
        "min_p" => sampling.min_p = share(text)?,
        "repeat_penalty" => sampling.repetition_penalty = penalty(text)?,
        "seed" => {
            let whole = "it must be a whole number, 0 or more";
            sampling.seed = text.parse().map_err(|_| whole.to_string())?;
        }
        _ => {
            return Err(format!(
                "there is no such value; there are {}",
                NAMES.join(", ")
            ));
        }
    }
    Ok(())
}

/// The names that [`set`] knows.
pub const NAMES: [&str; 6] = ["temp", "top_k", "top_p", "min_p", "repeat_penalty", "seed"];

fn candidates(text: &str) -> Result<u32, String> {
    let k = text.parse().ok().filter(|k: &u32| *k <= 256);
    k.ok_or_else(|| "it must be a whole number from 0 to 256".to_string())
}

fn temperature(text: &str) -> Result<f32, String> {
    number(text, "0 or more", |t| t >= 0.0)
}

fn sum_of_probabilities(text: &str) -> Result<f32, String> {
    number(text, "above 0 and at most 1", |p| p > 0.0 && p <= 1.0)
}

fn share(text: &str) -> Result<f32, String> {
    number(text, "from 0 to 1", |p| (0.0..=1.0).contains(&p))
}

fn penalty(text: &str) -> Result<f32, String> {
    number(text, "above 0", |x| x > 0.0)
}

/// A seed as it is given, or for -1 one that nobody knows before.
fn seed(text: &str) -> Result<Seed, String> {
    let is_random = text == "-1";
    let value = if is_random {
        Some(akunu::random_seed())
    } else {
        text.parse().ok()
    };
    let value = value.ok_or("it must be a whole number of 0 or more, or -1 for a random one")?;
    Ok(Seed { value, is_random })
}

/// A finite number that keeps a rule, which `wanted` puts into words.
fn number(text: &str, wanted: &str, holds: impl Fn(f32) -> bool) -> Result<f32, String> {
    let found = text.parse().ok();
    found
        .filter(|number: &f32| number.is_finite() && holds(*number))
        .ok_or_else(|| format!("it must be a number {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(sum_of_probabilities("1"), Ok(1.0));
        for wrong in ["7", "0", "-1", "NaN", "inf", "much", ""] {
            let said = sum_of_probabilities(wrong);
            assert_eq!(
                said,
                Err("it must be a number above 0 and at most 1".into())
            );
        }
        assert_eq!(share("0"), Ok(0.0));
        assert!(temperature("-0.1").is_err() && penalty("0").is_err());
        assert!(candidates("257").is_err() && candidates("-1").is_err());
    }

    /// Options come first, then what the model suggests, then what holds for every conversation.
    #[test]
    fn a_conversation_draws_as_the_model_suggests_unless_told() {
        let told = SamplingArgs {
            temp: None,
            top_k: Some(7),
            top_p: None,
            min_p: None,
            repeat_penalty: None,
            seed: Some(seed("3").unwrap()),
        };
        let suggested = SuggestedSampling {
            top_k: Some(20),
            top_p: Some(0.8),
            ..SuggestedSampling::default()
        };
        let wanted = Sampling {
            top_k: 7,
            top_p: 0.8,
            seed: 3,
            ..akunu::chat_sampling(&suggested)
        };
        assert_eq!(told.for_chat(&suggested), wanted);
        assert_eq!(told.sampling().temperature, 0.0);
    }

    #[test]
    fn every_name_can_be_set() {
        let mut sampling = PLAIN;
        for name in NAMES {
            assert_eq!(set(&mut sampling, name, "1"), Ok(()), "{name}");
            assert!(set(&mut sampling, name, "x").is_err(), "{name}");
        }
        let wanted = Sampling {
            temperature: 1.0,
            top_k: 1,
            top_p: 1.0,
            min_p: 1.0,
            repetition_penalty: 1.0,
            seed: 1,
            ..PLAIN
        };
        assert_eq!(sampling, wanted);
        let unknown = set(&mut sampling, "heat", "1").expect_err("no such name");
        assert!(unknown.contains("repeat_penalty"), "{unknown}");
    }
}
