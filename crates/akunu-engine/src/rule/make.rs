//! The rule that options ask for.

use akunu_program::Choose;
use akunu_tokenizer::Tokenizer;
use akunu_types::params::SamplingRule;

use super::{MAX_BIASES, MAX_LOGPROBS, Rule};
use crate::error::EngineError;
use crate::options::GenerateOptions;

impl Rule {
    /// The rule for an answer to a prompt of `n_prompt` tokens. Options out of their range are an error.
    pub fn new(
        options: &GenerateOptions,
        tokenizer: &Tokenizer,
        n_prompt: usize,
    ) -> Result<Rule, EngineError> {
        let sampling = &options.sampling;
        sampling.check()?;
        let biases = biases(&options.logit_bias, tokenizer.vocab_size())?;
        if let Some(n) = options.logprobs.filter(|&n| n > MAX_LOGPROBS) {
            return Err(EngineError::Sampling {
                option: "number of log probabilities",
                found: n as f32,
                wanted: "0 to 20",
            });
        }
        let breakers = if sampling.dry_multiplier > 0.0 {
            breakers(&options.dry_breakers, tokenizer)
        } else {
            Vec::new()
        };
        Ok(Rule {
            words: SamplingRule {
                n_biases: biases.len() as u32,
                n_scores: options.logprobs.map_or(0, |n| n + 1),
                ..sampling.rule(n_prompt)
            },
            biases: biases.into(),
            breakers: breakers.into(),
            mu: 2.0 * sampling.mirostat_tau,
        })
    }

    /// Which kind of choice it takes.
    pub fn choice(&self, options: &GenerateOptions) -> Choose {
        if self.biases.is_empty() {
            options.sampling.choice()
        } else {
            Choose::ByRule
        }
    }
}

/// The biases, the last of each token.
fn biases(given: &[(u32, f32)], vocab_size: usize) -> Result<Vec<(u32, f32)>, EngineError> {
    let mut biases: Vec<(u32, f32)> = Vec::with_capacity(given.len().min(MAX_BIASES));
    if given.len() > MAX_BIASES {
        return Err(EngineError::Sampling {
            option: "number of logit biases",
            found: given.len() as f32,
            wanted: "at most 1024",
        });
    }
    for &(id, value) in given {
        if id as usize >= vocab_size {
            let vocab_size = vocab_size as u32;
            return Err(EngineError::UnknownToken { id, vocab_size });
        }
        if value.is_nan() || value == f32::INFINITY {
            return Err(EngineError::Sampling {
                option: "logit bias",
                found: value,
                wanted: "a number, or minus infinity",
            });
        }
        match biases.iter_mut().find(|bias| bias.0 == id) {
            Some(bias) => bias.1 = value,
            None => biases.push((id, value)),
        }
    }
    Ok(biases)
}

/// A bit for each token whose text has one of the breakers in it.
fn breakers(texts: &[String], tokenizer: &Tokenizer) -> Vec<u32> {
    let vocab_size = tokenizer.vocab_size();
    let mut bits = vec![0u32; vocab_size.div_ceil(32)];
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    for id in 0..vocab_size {
        let Some(token) = tokenizer.token_bytes(id as u32) else {
            continue;
        };
        let has =
            |text: &&[u8]| !text.is_empty() && token.windows(text.len()).any(|at| at == *text);
        if texts.iter().any(has) {
            bits[id / 32] |= 1 << (id % 32);
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a token could be changed by two threads at once, or a list be longer than its room.
    #[test]
    fn biases_are_of_different_tokens_and_few() {
        let found = biases(&[(3, 1.0), (5, 2.0), (3, -1.0)], 10).expect("sound");
        assert_eq!(found, [(3, -1.0), (5, 2.0)]);
        assert!(biases(&[(10, 1.0)], 10).is_err());
        assert!(biases(&[(1, f32::NAN)], 10).is_err());
        assert!(biases(&[(1, f32::NEG_INFINITY)], 10).is_ok());
        let many = vec![(1, 0.0); MAX_BIASES + 1];
        let said = biases(&many, 10).expect_err("too many").to_string();
        assert!(said.contains("1024"), "{said}");
    }
}
