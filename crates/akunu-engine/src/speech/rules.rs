//! Which tokens a speech model may say next.
//!
//! A transcript with times is made of segments `<|begin|> text <|end|>`. The rules, for the logits after some tokens:
//!
//! 1. Some tokens are never said (noise, brackets, control tokens), which the device sees to ([`never_said`]); a blank
//!    and the end are not said first.
//! 2. Times come in pairs: after the two of a pair comes text, after a single one its partner or the end.
//! 3. Times do not go back; a segment that has text is not empty.
//! 4. The first token is a time, of the first second.
//! 5. When all times together are more probable than the best text, a time comes.

use super::tokens::SpeechTokens;

/// The first time is at most this many steps of 0.02 s after the beginning.
const MAX_FIRST_TIME: u32 = 50;

/// The rules of one model, for one window.
#[derive(Clone, Debug)]
pub struct SpeechRules<'a> {
    /// The tokens that are no text.
    pub tokens: &'a SpeechTokens,
    /// Not said first.
    pub suppressed_first: &'a [u32],
    /// Whether times are said at all.
    pub has_times: bool,
}

impl SpeechRules<'_> {
    /// Forbids what may not follow on `said`, the tokens of this window so far: its logit becomes -inf.
    pub fn apply(&self, said: &[u32], logits: &mut [f32]) {
        if said.is_empty() {
            forbid(logits, self.suppressed_first.iter().copied());
        }
        if self.has_times {
            self.apply_pairs(said, logits);
            self.apply_first(said, logits);
            self.apply_likelihood(logits);
        } else {
            let tokens = self.tokens;
            forbid(logits, tokens.first_time()..tokens.vocab_size);
        }
    }

    /// Rules 2 and 3.
    fn apply_pairs(&self, said: &[u32], logits: &mut [f32]) {
        let tokens = self.tokens;
        let is_time = |id: Option<&u32>| id.is_some_and(|&id| tokens.is_time(id));
        let last_was_time = is_time(said.last());
        let before_was_time = said.len() < 2 || is_time(said.get(said.len() - 2));
        if last_was_time {
            if before_was_time {
                forbid(logits, tokens.first_time()..tokens.vocab_size);
            } else {
                forbid(logits, 0..tokens.end);
            }
        }
        if let Some(&last_time) = said.iter().rfind(|&&id| tokens.is_time(id)) {
            // The partner of a single time may be the same; the end of a segment lies after its beginning.
            let is_partner = last_was_time && !before_was_time;
            let first_allowed = last_time + u32::from(!is_partner);
            forbid(logits, tokens.first_time()..first_allowed);
        }
    }

    /// Rule 4.
    fn apply_first(&self, said: &[u32], logits: &mut [f32]) {
        if said.is_empty() {
            let tokens = self.tokens;
            forbid(logits, 0..tokens.first_time());
            let latest = tokens.first_time() + MAX_FIRST_TIME;
            forbid(logits, latest + 1..tokens.vocab_size);
        }
    }

    /// Rule 5.
    fn apply_likelihood(&self, logits: &mut [f32]) {
        let first_time = self.tokens.first_time() as usize;
        let Some((text, times)) = logits.split_at_checked(first_time) else {
            return;
        };
        if log_sum_exp(times) > largest(text) {
            forbid(logits, 0..self.tokens.first_time());
        }
    }
}

/// The tokens that are never said: those that the model names, and the ones that control it.
pub fn never_said(tokens: &SpeechTokens, suppressed: &[u32]) -> Vec<u32> {
    let mut ids = vec![
        tokens.start,
        tokens.previous,
        tokens.no_speech,
        tokens.translate,
        tokens.transcribe,
        tokens.no_times,
    ];
    ids.extend(suppressed);
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn forbid(logits: &mut [f32], ids: impl IntoIterator<Item = u32>) {
    for id in ids {
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

/// The largest of these, -inf if there are none. Several lanes at a time: otherwise each comparison waits for the one
/// before.
pub(super) fn largest(values: &[f32]) -> f32 {
    const LANES: usize = 16;
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (blocks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for block in blocks {
        for (lane, &value) in lanes.iter_mut().zip(block) {
            *lane = larger(*lane, value);
        }
    }
    let all = lanes.iter().chain(rest).copied();
    all.fold(f32::NEG_INFINITY, larger)
}

/// `log Σ exp(x)`.
pub(super) fn log_sum_exp(values: &[f32]) -> f32 {
    let max = largest(values);
    if max == f32::NEG_INFINITY {
        return max;
    }
    let sum: f64 = values.iter().map(|&x| f64::from((x - max).exp())).sum();
    max + sum.ln() as f32
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

    /// The tokens that may follow, with equal logits but for one of text and the end, which are far more likely than all
    /// times.
    fn allowed(said: &[u32], has_times: bool) -> Vec<u32> {
        let tokens = tokens();
        let rules = SpeechRules {
            tokens: &tokens,
            suppressed_first: &[4, 10],
            has_times,
        };
        let mut logits = vec![0.0; 120];
        logits[9] = 20.0;
        logits[10] = 20.0;
        forbid(&mut logits, never_said(&tokens, &[3]));
        rules.apply(said, &mut logits);
        let may = (0..120).filter(|&id: &u32| logits[id as usize] > f32::NEG_INFINITY);
        may.collect()
    }

    const T: u32 = 19;

    /// Fails when a value at an end of the list, or one that is no number, decides.
    #[test]
    fn the_largest_is_found_wherever_it_is() {
        for n in [1, 15, 16, 17, 40] {
            for at in 0..n {
                let mut values = vec![-3.0; n];
                values[at] = -1.0;
                assert_eq!(largest(&values), -1.0, "{at} of {n}");
                values[(at + 1) % n] = f32::NAN;
                let expected = if n == 1 { f32::NEG_INFINITY } else { -1.0 };
                assert_eq!(largest(&values), expected, "{at} of {n}");
            }
        }
        assert_eq!(largest(&[]), f32::NEG_INFINITY);
    }

    /// Fails when a window can begin with text, or late.
    #[test]
    fn the_first_token_is_an_early_time() {
        assert_eq!(allowed(&[], true), (T..=T + 50).collect::<Vec<_>>());
    }

    /// Fails when a third time can follow on two, or text on a single one.
    #[test]
    fn times_come_in_pairs() {
        let texts = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13];
        assert_eq!(allowed(&[T], true), texts);
        assert_eq!(allowed(&[T, 5, T + 9, T + 9], true), texts);
        let partner_or_end = allowed(&[T, 5, T + 9], true);
        assert_eq!(partner_or_end[0], 10, "the end");
        assert!(partner_or_end.iter().all(|&id| id >= 10));
        assert!(partner_or_end.contains(&(T + 9)), "the same time");
    }

    /// Fails when times can go back, or when a segment can end where it began.
    #[test]
    fn times_do_not_go_back() {
        let after = allowed(&[T + 5, 7], true);
        assert!(after.contains(&(T + 6)) && !after.contains(&(T + 5)));
        let partner = allowed(&[T, 5, T + 9], true);
        assert!(!partner.contains(&(T + 8)));
    }

    /// Fails when suppressed tokens, or times that nobody wants, are said.
    #[test]
    fn suppressed_tokens_are_not_said() {
        assert_eq!(allowed(&[], false), [0, 1, 2, 5, 6, 7, 8, 9, 12, 13]);
        assert_eq!(
            allowed(&[7], false),
            [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13]
        );
    }

    /// Fails when the sum of all times does not count: each is less likely than the text.
    #[test]
    fn likely_times_win_over_text() {
        let tokens = tokens();
        let rules = SpeechRules {
            tokens: &tokens,
            suppressed_first: &[],
            has_times: true,
        };
        let mut logits = vec![0.0; 120];
        logits[5] = 2.0;
        rules.apply(&[T, 7], &mut logits);
        assert_eq!(logits[5], f32::NEG_INFINITY);
        let mut logits = vec![0.0; 120];
        logits[5] = 6.0;
        rules.apply(&[T, 7], &mut logits);
        assert_eq!(logits[5], 6.0);
    }
}
