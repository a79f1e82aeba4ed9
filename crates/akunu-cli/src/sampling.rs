//! The options that say how tokens are chosen.

use akunu_engine::Sampling;
use clap::Args;

/// How tokens are chosen.
#[derive(Args)]
pub struct SamplingArgs {
    /// 0 always takes the most likely token; higher is more varied
    #[arg(long, value_name = "T", allow_negative_numbers = true, default_value_t = 0.0, value_parser = temperature)]
    temp: f32,
    /// Choose among this many of the most likely tokens, at most 256; 0 for as many as possible
    #[arg(long, value_name = "K", default_value_t = 40, value_parser = clap::value_parser!(u32).range(0..=256))]
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
    /// The same seed gives the same answer
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl SamplingArgs {
    /// As the engine takes it.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            seed: self.seed,
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
