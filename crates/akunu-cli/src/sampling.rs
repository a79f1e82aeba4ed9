//! The options that say how tokens are chosen.

use crate::terminal::{note, warn};
use akunu_engine::Sampling;
use akunu_kernels::kernel::sampling::topk_select::MAX_K;
use clap::Args;
use std::hash::{BuildHasher, RandomState};

/// How tokens are chosen.
#[derive(Args)]
pub struct SamplingArgs {
    /// 0 always takes the most likely token; higher is more varied
    #[arg(long, value_name = "T", allow_negative_numbers = true, default_value_t = 0.0, value_parser = temperature)]
    temp: f32,
    /// Choose among this many of the most likely tokens; 0 and more than 256 choose among 256
    #[arg(
        long,
        value_name = "K",
        allow_negative_numbers = true,
        default_value_t = 40
    )]
    top_k: u32,
    /// Choose among the most likely tokens whose probabilities sum to this
    #[arg(long, value_name = "P", allow_negative_numbers = true, default_value_t = 0.95, value_parser = sum_of_probabilities)]
    top_p: f32,
    /// Leave out tokens less likely than this share of the most likely one
    #[arg(long, value_name = "P", allow_negative_numbers = true, default_value_t = 0.05, value_parser = share)]
    min_p: f32,
    /// Above 1 makes the last 64 tokens less likely
    #[arg(long, value_name = "X", allow_negative_numbers = true, default_value_t = 1.0, value_parser = penalty)]
    repeat_penalty: f32,
    /// The same seed gives the same answer; -1 takes another one each time, and tells it
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "0", value_parser = seed)]
    seed: Seed,
}

/// Where draws begin.
#[derive(Clone, Copy)]
struct Seed {
    value: u64,
    is_random: bool,
}

impl SamplingArgs {
    /// As the engine takes it. What is not exactly as asked for is told.
    pub fn sampling(&self) -> Sampling {
        if self.seed.is_random {
            note(&format!("seed {}", self.seed.value));
        }
        if self.top_k > MAX_K {
            warn(&format!(
                "--top-k {} acts as {MAX_K}, the most candidates that can be drawn from",
                self.top_k
            ));
        }
        Sampling {
            temperature: self.temp,
            top_k: self.top_k.min(MAX_K),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            seed: self.seed.value,
            ..Sampling::greedy()
        }
    }
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

/// A seed as it is given, or for -1 one that nobody knows before. 32 bits of it can be typed again, and
/// every reader of JSON keeps them.
fn seed(text: &str) -> Result<Seed, String> {
    let is_random = text == "-1";
    let value = if is_random {
        Some(RandomState::new().hash_one(0) >> 32)
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
    }
}
