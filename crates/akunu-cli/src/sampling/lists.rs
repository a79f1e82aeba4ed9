//! Options that are lists: biases of tokens, and texts at which repetitions end.

use akunu::{DRY_BREAKERS, MAX_LOGPROBS};
use clap::Args;

/// What is told of tokens besides numbers.
#[derive(Args, Default)]
pub struct ListArgs {
    /// Add a number to the logit of a token before everything else, as in 15043=-2.5; -inf forbids the token. May be
    /// given several times
    #[arg(long, value_name = "ID=X", value_parser = bias)]
    logit_bias: Vec<(u32, f32)>,
    /// A text at which a repetition ends for --dry-multiplier; may be given several times; "none" for no such
    /// text [default: \n : " *]
    #[arg(long, value_name = "TEXT")]
    dry_breaker: Vec<String>,
}

impl ListArgs {
    /// Tokens and what is added to their logits.
    pub fn logit_bias(&self) -> Vec<(u32, f32)> {
        self.logit_bias.clone()
    }

    /// The texts at which repetitions end.
    pub fn dry_breakers(&self) -> Vec<String> {
        if self.dry_breaker.is_empty() {
            return DRY_BREAKERS.map(String::from).to_vec();
        }
        let given = self.dry_breaker.iter().filter(|text| *text != "none");
        given
            .map(|text| text.replace("\\n", "\n").replace("\\t", "\t"))
            .collect()
    }
}

/// `ID=X`.
fn bias(text: &str) -> Result<(u32, f32), String> {
    let pair = text.split_once('=').and_then(|(id, value)| {
        let value: f32 = value.trim().parse().ok()?;
        Some((id.trim().parse().ok()?, value))
    });
    let possible = pair.filter(|(_, value)| !value.is_nan() && *value < f32::INFINITY);
    possible.ok_or_else(|| "it must be a token's id, = and a number, as in 15043=-2.5".to_string())
}

/// How many log probabilities are told.
pub fn logprobs(text: &str) -> Result<u32, String> {
    let n = text.parse().ok().filter(|n| *n <= MAX_LOGPROBS);
    n.ok_or_else(|| format!("it must be a whole number from 0 to {MAX_LOGPROBS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_are_pairs() {
        assert_eq!(bias("15043=-2.5"), Ok((15043, -2.5)));
        assert_eq!(bias("7 = -inf"), Ok((7, f32::NEG_INFINITY)));
        for wrong in ["7", "=1", "-1=2", "7=much", "7=inf", "7=NaN"] {
            assert!(bias(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn breakers_are_those_given_or_the_usual_ones() {
        let of = |given: &[&str]| ListArgs {
            dry_breaker: given.iter().map(|text| text.to_string()).collect(),
            ..ListArgs::default()
        };
        assert_eq!(of(&[]).dry_breakers(), DRY_BREAKERS);
        assert_eq!(of(&["none"]).dry_breakers(), Vec::<String>::new());
        assert_eq!(of(&["\\n", "!"]).dry_breakers(), ["\n", "!"]);
    }
}
