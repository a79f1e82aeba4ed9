//! Which tokens a speech model may say, as the device gets it: a bit for each token.
//!
//! The rules themselves, which depend on what was said before, are those of [`Op::SpeechRules`](akunu_program::Op::SpeechRules).

use akunu_arch::Speech;
use akunu_program::TranscriptTokens;

use super::tokens::SpeechTokens;

/// The first time is at most this many steps of 0.02 s after the beginning.
const MAX_FIRST_TIME: u32 = 50;

/// What the rules need to know of a model.
#[derive(Clone, Debug)]
pub(super) struct SpeechRules {
    /// Where the tokens that are no text are.
    pub tokens: TranscriptTokens,
    /// A bit for each token that may be said, and then for each that may be said first, (2, vocabulary / 32).
    pub masks: Vec<u32>,
}

impl SpeechRules {
    pub fn new(config: &Speech, tokens: &SpeechTokens) -> SpeechRules {
        let never = never_said(tokens, &config.suppressed);
        let not_first = never.iter().chain(&config.suppressed_first);
        let masks = [
            all_but(&never, tokens.vocab_size),
            all_but(not_first, tokens.vocab_size),
        ];
        SpeechRules {
            tokens: TranscriptTokens {
                end: tokens.end,
                first_time: tokens.first_time(),
                n_first_times: MAX_FIRST_TIME + 1,
            },
            masks: masks.concat(),
        }
    }
}

/// The tokens that are never said: those that the model names, and the ones that control it.
fn never_said(tokens: &SpeechTokens, suppressed: &[u32]) -> Vec<u32> {
    let control = [
        tokens.start,
        tokens.previous,
        tokens.no_speech,
        tokens.translate,
        tokens.transcribe,
        tokens.no_times,
    ];
    control
        .into_iter()
        .chain(suppressed.iter().copied())
        .collect()
}

/// A bit for each token of a vocabulary but these; an id beyond it is passed over.
fn all_but<'a>(ids: impl IntoIterator<Item = &'a u32>, vocab_size: u32) -> Vec<u32> {
    let mut bits = vec![u32::MAX; vocab_size.div_ceil(32) as usize];
    for id in ids {
        if let Some(word) = bits.get_mut(*id as usize / 32) {
            *word &= !(1 << (id % 32));
        }
    }
    bits
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A vocabulary of 10 texts, the usual tokens and 100 times.
    pub fn tokens() -> SpeechTokens {
        SpeechTokens {
            end: 10,
            start: 11,
            first_language: 12,
            languages: vec!["en".into(), "zh".into()],
            translate: 14,
            transcribe: 15,
            previous: 16,
            no_speech: 17,
            no_times: 18,
            vocab_size: 120,
        }
    }

    /// Fails when a token that controls the model can be said, or one that is not said first is never said.
    #[test]
    fn masks_have_a_bit_for_each_token_that_may_be_said() {
        let never = never_said(&tokens(), &[3, 40, 5000]);
        let mask = all_but(&never, 120);
        let may = |id: u32| mask[id as usize / 32] >> (id % 32) & 1 == 1;
        let forbidden: Vec<u32> = (0..120).filter(|&id| !may(id)).collect();
        assert_eq!(forbidden, [3, 11, 14, 15, 16, 17, 18, 40]);
        assert_eq!(all_but(&[], 33), [u32::MAX; 2]);
    }
}
