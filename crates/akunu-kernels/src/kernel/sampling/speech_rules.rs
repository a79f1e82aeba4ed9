//! `speech_rules_f32`: `logits[t] = -inf` for each token that may not follow in the transcript of its row, in place.
//!
//! Row i of the logits belongs to row `outputs[i]` of the row table. What was said so far lies in the history of its
//! sequence: the tokens from number `transcript_start` on, which the rule of the sequence names. A transcript with times
//! (`has_times`) is made of segments `<|begin|> text <|end|>`:
//!
//! 1. Some tokens are never said, and some not first: `masks` (2, vocabulary / 32) has a bit for each token that may be
//!    said, and after those words a bit for each that may be said first.
//! 2. Times come in pairs: after the two of a pair comes text, after a single one its partner or the end.
//! 3. Times do not go back; a segment that has text is not empty.
//! 4. The first token is one of the first times.
//! 5. When all times together are more probable than the best text, a time comes.
//!
//! A transcript without times has only the first of these rules, and no times. An idle row stays as it is; NaN counts as
//! probability 0. One threadgroup a row.

#[cfg(feature = "testing")]
mod cases;

use std::ops::Range;

use akunu_types::params::{Row, SamplingRule, SpeechRulesParams};

use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: SpeechRulesParams at 3) {
        logits: change f32 = [p.n_rows, p.vocab_size],
        masks: read u32 = [2, p.vocab_size.div_ceil(32)],
        history: read u32 = [p.n_sequences, p.history_stride],
        outputs: read u32 = [p.n_rows],
        rows: read Row = [p.row_capacity],
        rules: read SamplingRule = [p.n_sequences],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("speech_rules_f32", ""),
    family: Family::Sampling,
    source: "speech_rules",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// Without a history nobody knows what was said: an empty grid, which the plan check refuses.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: SpeechRulesParams = args.params();
    let n_rows = match p.history_stride {
        0 => 0,
        _ => p.n_rows,
    };
    Launch::new([n_rows, 1, 1], [chip.max_threads.min(1024), 1, 1])
}

/// The logits count once: which of them change stands in the history. Of the rest a row each is touched.
fn work(args: &Args, once: Work) -> Work {
    let p: SpeechRulesParams = args.params();
    let n = p.n_rows.min(p.n_sequences);
    once.with(
        Buffers::PLACES.masks,
        Traffic::read(bytes::<u32>(&[p.vocab_size.div_ceil(32)])),
    )
    .with(
        Buffers::PLACES.history,
        Traffic::read(bytes::<u32>(&[n, p.history_stride])),
    )
    .with(
        Buffers::PLACES.rows,
        Traffic::read(bytes::<Row>(&[p.n_rows.min(p.row_capacity)])),
    )
    .with(
        Buffers::PLACES.rules,
        Traffic::read(bytes::<SamplingRule>(&[n])),
    )
}

/// What was said in a transcript: the tokens of a sequence from a number on.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The last tokens of the sequence: number t lies at `t % history.len()`.
    history: &'a [u32],
    /// Tokens of the sequence.
    length: u32,
    n: u32,
}

impl<'a> Said<'a> {
    /// What a row has said, whose sequence has this history and rule.
    pub fn of(row: &Row, rule: &SamplingRule, history: &'a [u32]) -> Said<'a> {
        let n = row.length.saturating_sub(rule.transcript_start);
        Said {
            history,
            length: row.length,
            n: n.min(history.len() as u32),
        }
    }

    /// Whether it is nothing yet.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The tokens, the last one first.
    fn backwards(&self) -> impl Iterator<Item = u32> + use<'a> {
        let Said {
            history, length, ..
        } = *self;
        (0..self.n).map(move |at| history[(length - 1 - at) as usize % history.len()])
    }
}

/// What may follow by the places of times alone: rules 2 to 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Tokens that are no times may follow from this one on.
    pub text: u32,
    /// Times that may follow.
    pub times: Range<u32>,
}

impl Allowed {
    /// What may follow in a transcript.
    pub fn after(said: &Said, has_times: bool, p: &SpeechRulesParams) -> Allowed {
        let (first_time, end) = (p.first_time, p.vocab_size);
        let is_time = |id: &u32| *id >= first_time;
        let mut backwards = said.backwards();
        let (text, times) = match (backwards.next(), backwards.next()) {
            _ if !has_times => (0, end..end),
            (None, _) => {
                let latest = first_time.saturating_add(p.n_first_times);
                (first_time, first_time..latest.min(end))
            }
            (Some(last), Some(before)) if is_time(&last) && !is_time(&before) => (p.end, last..end),
            (Some(last), _) if is_time(&last) => (0, end..end),
            _ => {
                let last_time = said.backwards().find(is_time);
                (0, last_time.map_or(first_time, |time| time + 1)..end)
            }
        };
        Allowed { text, times }
    }
}

fn twin(t: &mut Twin) {
    let p: SpeechRulesParams = t.params();
    let Slices {
        logits,
        masks,
        history,
        outputs,
        rows,
        rules,
    } = Slices::of(t);
    let logits = logits.chunks_exact_mut(p.vocab_size as usize);
    for (logits, &output) in logits.zip(outputs) {
        let row = &rows[output as usize];
        if row.is_active() {
            let (sequence, stride) = (row.sequence as usize, p.history_stride as usize);
            let rule = &rules[sequence];
            let said = Said::of(row, rule, &history[sequence * stride..][..stride]);
            forbid(&said, rule.has_times != 0, masks, &p, logits);
        }
    }
}

/// Forbids what may not follow.
fn forbid(said: &Said, has_times: bool, masks: &[u32], p: &SpeechRulesParams, logits: &mut [f32]) {
    let n_words = p.vocab_size.div_ceil(32) as usize;
    let mask = &masks[if said.is_empty() { n_words } else { 0 }..];
    let allowed = Allowed::after(said, has_times, p);
    for (id, logit) in (0..).zip(logits.iter_mut()) {
        let in_range = if id < p.first_time {
            id >= allowed.text
        } else {
            allowed.times.contains(&id)
        };
        if !in_range || mask[id as usize / 32] >> (id % 32) & 1 == 0 {
            *logit = f32::NEG_INFINITY;
        }
    }
    let (text, times) = logits.split_at_mut(p.first_time.min(p.vocab_size) as usize);
    if log_sum_exp(times) > largest(text) {
        text.fill(f32::NEG_INFINITY);
    }
}

fn largest(values: &[f32]) -> f32 {
    values.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

fn log_sum_exp(values: &[f32]) -> f32 {
    let best = largest(values);
    let weight = |value: f32| match value {
        value if value == best => 1.0,
        value => f64::from(value - best).exp(),
    };
    let numbers = values
        .iter()
        .copied()
        .filter(|value| *value > f32::NEG_INFINITY);
    let sum: f64 = numbers.map(weight).sum();
    best + sum.ln() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vocabulary of 10 texts, the end, eight other tokens, and 101 times.
    const P: SpeechRulesParams = SpeechRulesParams {
        n_rows: 1,
        vocab_size: 120,
        history_stride: 8,
        n_sequences: 1,
        row_capacity: 1,
        end: 10,
        first_time: 19,
        n_first_times: 51,
    };
    const T: u32 = P.first_time;

    /// Forbids what may not follow: token 3 is never said, 4 and the end not first.
    fn apply(said: &[u32], has_times: bool, logits: &mut [f32]) {
        let mut history = [0; 8];
        history[1..][..said.len()].copy_from_slice(said);
        let said = Said {
            history: &history,
            length: 1 + said.len() as u32,
            n: said.len() as u32,
        };
        let mut masks = [u32::MAX; 8];
        masks[0] = !(1 << 3);
        masks[4] = !(1 << 3 | 1 << 4 | 1 << 10);
        forbid(&said, has_times, &masks, &P, logits);
    }

    /// The tokens that may follow, with equal logits but for one of text and the end, which are far more likely than all
    /// times.
    fn allowed(said: &[u32], has_times: bool) -> Vec<u32> {
        let mut logits = vec![0.0; 120];
        (logits[9], logits[10]) = (20.0, 20.0);
        apply(said, has_times, &mut logits);
        let may = (0..120).filter(|&id: &u32| logits[id as usize] > f32::NEG_INFINITY);
        may.collect()
    }

    /// All that is no time, without what is never said.
    fn texts() -> Vec<u32> {
        (0..T).filter(|&id| id != 3).collect()
    }

    /// Fails when a window can begin with text, or late.
    #[test]
    fn the_first_token_is_an_early_time() {
        assert_eq!(allowed(&[], true), (T..=T + 50).collect::<Vec<_>>());
    }

    /// Fails when a third time can follow on two, or text on a single one.
    #[test]
    fn times_come_in_pairs() {
        assert_eq!(allowed(&[T], true), texts());
        assert_eq!(allowed(&[T, 5, T + 9, T + 9], true), texts());
        let partner_or_end = allowed(&[T, 5, T + 9], true);
        assert_eq!(partner_or_end[0], P.end);
        assert!(partner_or_end.contains(&(T + 9)), "the same time");
    }

    /// Fails when times can go back, or when a segment can end where it began.
    #[test]
    fn times_do_not_go_back() {
        let after = allowed(&[T + 5, 7], true);
        assert!(after.contains(&(T + 6)) && !after.contains(&(T + 5)));
        let partner = allowed(&[T, 5, T + 9], true);
        assert!(!partner.contains(&(T + 8)));
        // After the last time of the vocabulary there is none.
        assert_eq!(allowed(&[T, 5, 119, 119, 6], true), texts());
        let last: Vec<u32> = (10..T).chain([119]).collect();
        assert_eq!(allowed(&[T, 5, 119], true), last);
    }

    /// Fails when suppressed tokens, or times that nobody wants, are said.
    #[test]
    fn suppressed_tokens_are_not_said() {
        let first: Vec<u32> = (0..T).filter(|id| ![3, 4, 10].contains(id)).collect();
        assert_eq!(allowed(&[], false), first);
        assert_eq!(allowed(&[7], false), texts());
    }

    /// Fails when the sum of all times does not count: each is less likely than the text.
    #[test]
    fn likely_times_win_over_text() {
        for (logit, is_left) in [(2.0, false), (6.0, true)] {
            let mut logits = vec![0.0; 120];
            logits[5] = logit;
            apply(&[T, 7], true, &mut logits);
            assert_eq!(logits[5] == logit, is_left, "{logit}");
        }
    }

    /// Fails when the prompt counts as said, or when the history is read where it does not reach.
    #[test]
    fn what_was_said_lies_after_the_prompt() {
        let history = [T, T + 1, 7, T + 2];
        let rule = SamplingRule {
            transcript_start: 2,
            ..SamplingRule::PLAIN
        };
        let said = |length| {
            let row = Row {
                length,
                ..Row::at(0, 0)
            };
            Said::of(&row, &rule, &history)
                .backwards()
                .collect::<Vec<_>>()
        };
        assert!(said(1).is_empty() && said(2).is_empty());
        assert_eq!(said(4), [T + 2, 7]);
        assert_eq!(said(5), [T, T + 2, 7]);
        assert_eq!(said(9), [T, T + 2, 7, T + 1]);
    }
}
