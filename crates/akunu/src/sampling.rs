//! How tokens are chosen in a conversation, unless somebody says otherwise.

use std::hash::{BuildHasher, RandomState};

use akunu_engine::{Sampling, SamplingOptions};

/// The sampling of a single answer of a model that suggests `suggested`, with a [random](random_seed) seed. What a model does
/// not suggest is careful: small models say what they know only if they are seldom led away from it. Nothing is penalised,
/// because the words of a right answer are often those of the question.
///
/// ```no_run
/// # let model = akunu::Model::open("model.gguf")?;
/// let sampling = akunu::careful_sampling(model.suggested_sampling());
/// # Ok::<(), akunu::Error>(())
/// ```
pub fn careful_sampling(suggested: &SamplingOptions) -> Sampling {
    suggested.over(Sampling {
        temperature: 0.1,
        top_k: 40,
        top_p: 0.9,
        min_p: 0.05,
        seed: random_seed(),
        ..Sampling::greedy()
    })
}

/// The sampling of a conversation: as [`careful_sampling`], with a DRY penalty that begins at the 16th token of a line that the
/// answer repeats word by word. Without it small models end almost half of their long answers in a loop.
///
/// ```
/// let sampling = akunu::chat_sampling(&akunu::SamplingOptions::default());
/// assert!(sampling.dry_multiplier > 0.0);
/// ```
pub fn chat_sampling(suggested: &SamplingOptions) -> Sampling {
    let careful = careful_sampling(suggested);
    if careful.temperature == 0.0 {
        return careful;
    }
    Sampling {
        dry_multiplier: suggested.dry_multiplier.unwrap_or(0.8),
        dry_allowed_length: suggested.dry_allowed_length.unwrap_or(16),
        ..careful
    }
}

/// A random seed. It has 32 bits, so that it is easily typed again and safe in JSON.
///
/// ```
/// assert!(akunu::random_seed() < 1 << 32);
/// ```
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(0) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_values_hold_and_each_seed_is_new() {
        let suggested = SamplingOptions {
            top_k: Some(20),
            ..SamplingOptions::default()
        };
        let one = chat_sampling(&suggested);
        assert_eq!(one.top_k, 20);
        assert_ne!(one.seed, chat_sampling(&suggested).seed);
    }

    /// Fails if a penalty of single tokens becomes a default again: it made small models avoid the words of the question.
    #[test]
    fn only_long_repetitions_are_penalised_by_default() {
        let unsaid = SamplingOptions::default();
        let (careful, chat) = (careful_sampling(&unsaid), chat_sampling(&unsaid));
        let plain = Sampling::greedy();
        let penalties = |s: Sampling| {
            [
                s.repetition_penalty,
                s.frequency_penalty,
                s.presence_penalty,
            ]
        };
        assert_eq!(penalties(careful), penalties(plain));
        assert_eq!(penalties(chat), penalties(plain));
        assert_eq!(careful.dry_multiplier, 0.0);
        assert!(chat.dry_multiplier > 0.0 && chat.dry_allowed_length >= 8);
    }

    /// Fails if a model that suggests temperature 0 does not get its most likely tokens.
    #[test]
    fn greedy_models_stay_greedy() {
        let suggested = SamplingOptions {
            temperature: Some(0.0),
            ..SamplingOptions::default()
        };
        let chat = Sampling {
            seed: 0,
            ..chat_sampling(&suggested)
        };
        assert_eq!(chat, Sampling::greedy());
    }
}
