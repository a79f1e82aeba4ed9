//! `penalties_f32`: adds each row's biases to its logits and penalises what came before, in place.
//!
//! In this order, by the rule of the row's sequence:
//!
//! ```text
//! bias        logit += value, for each pair of the sequence's list
//! repetition  for each token among the last ones, once: a positive logit is divided, a negative one multiplied
//! frequency   logit -= frequency * occurrences
//! presence    logit -= presence
//! DRY         logit -= multiplier * base^(n - allowed) for a token that would go on with a repetition of n >= allowed
//!             tokens: the last n tokens stand somewhere before, followed by that token
//! ```
//!
//! Only the tokens from `penalty_start` on count: of those the last `penalty_window`, or all; for DRY the last `dry_window`, or
//! all, at most [`DRY_MAX`]; and no more than the history keeps. A repetition ends at a breaker, a token whose bit is set in the sequence's
//! `(vocab_size)` bits, and a breaker is not penalised itself. An id beyond the vocabulary is passed over; no token
//! stands twice in a list of biases. An idle row changes nothing.

#[cfg(feature = "testing")]
mod cases;

use std::collections::BTreeMap;
use std::ops::Range;

use akunu_types::params::{PenaltiesParams, Row, SamplingRule};

use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers, usual_threads};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: PenaltiesParams at 1) {
        logits: change f32 = [p.n_rows, p.vocab_size],
        outputs: read u32 = [p.n_rows],
        rows: read Row = [p.row_capacity],
        rules: read SamplingRule = [p.n_sequences],
        history: read u32 = [p.n_sequences, p.history_stride],
        bias_tokens: read u32 = [p.n_sequences, p.bias_stride],
        bias_values: read f32 = [p.n_sequences, p.bias_stride],
        breakers: read u32 = [p.n_sequences, breaker_words(&p)],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("penalties_f32", ""),
    family: Family::Sampling,
    source: "penalties",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// The maximum number of tokens that are searched for repetitions.
pub const DRY_MAX: u32 = 8192;

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: PenaltiesParams = args.params();
    Launch::new([p.n_rows, 1, 1], [usual_threads(chip), 1, 1])
}

/// Words of a sequence's bits.
fn breaker_words(p: &PenaltiesParams) -> u32 {
    p.vocab_size.div_ceil(32)
}

/// How many tokens count stands in the rows and rules, not in the params: this counts all that the history
/// of a row keeps, and the logits that they can name. Biases and breakers are rare, and not counted.
fn work(args: &Args, once: Work) -> Work {
    let p: PenaltiesParams = args.params();
    let n_sequences = p.n_rows.min(p.n_sequences);
    let touched = bytes::<f32>(&[p.n_rows, p.history_stride.min(p.vocab_size)]);
    let rows = bytes::<Row>(&[p.n_rows.min(p.row_capacity)]);
    let history = bytes::<u32>(&[n_sequences, p.history_stride]);
    once.with(Buffers::PLACES.logits, Traffic::both(touched))
        .with(Buffers::PLACES.rows, Traffic::read(rows))
        .with(
            Buffers::PLACES.rules,
            Traffic::read(bytes::<SamplingRule>(&[n_sequences])),
        )
        .with(Buffers::PLACES.history, Traffic::read(history))
        .with(Buffers::PLACES.bias_tokens, Traffic::default())
        .with(Buffers::PLACES.bias_values, Traffic::default())
        .with(Buffers::PLACES.breakers, Traffic::default())
}

fn twin(t: &mut Twin) {
    let p: PenaltiesParams = t.params();
    let Slices {
        logits,
        outputs,
        rows,
        rules,
        history,
        bias_tokens,
        bias_values,
        breakers,
    } = Slices::of(t);
    let of = |row: &Row, stride: u32| row.sequence as usize * stride as usize;
    let logits = logits.chunks_exact_mut(p.vocab_size as usize);
    for (logits, &output) in logits.zip(outputs) {
        let row = &rows[output as usize];
        if !row.is_active() {
            continue;
        }
        let rule = &rules[row.sequence as usize];
        let n_biases = rule.n_biases.min(p.bias_stride) as usize;
        let first = of(row, p.bias_stride);
        let biases = bias_tokens[first..].iter().zip(&bias_values[first..]);
        for (&id, value) in biases.take(n_biases) {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit += value;
            }
        }
        let history = &history[of(row, p.history_stride)..][..p.history_stride as usize];
        let counted = rule.penalty_start.min(row.length)..row.length;
        let recent = |window| last_tokens(history, counted.clone(), window);
        penalise(logits, rule, &recent(rule.penalty_window));
        if rule.dry_multiplier > 0.0 {
            let mut recent = recent(rule.dry_window);
            recent.truncate(DRY_MAX as usize);
            dry(
                logits,
                rule,
                &recent,
                &breakers[of(row, breaker_words(&p))..],
            );
        }
    }
}

/// The last `window` of these tokens (0: all), from the last one backwards.
fn last_tokens(history: &[u32], tokens: Range<u32>, window: u32) -> Vec<u32> {
    let n_tokens = tokens.end - tokens.start;
    let window = if window == 0 { n_tokens } else { window };
    let n = (window.min(n_tokens) as usize).min(history.len());
    let back = |i: usize| history[(tokens.end as usize - 1 - i) % history.len()];
    (0..n).map(back).collect()
}

fn penalise(logits: &mut [f32], rule: &SamplingRule, recent: &[u32]) {
    let mut counts = BTreeMap::new();
    for &id in recent {
        *counts.entry(id).or_insert(0u32) += 1;
    }
    for (id, count) in counts {
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = penalised(*logit, count, rule);
        }
    }
}

/// The logit of a token that came so many times.
pub fn penalised(logit: f32, count: u32, rule: &SamplingRule) -> f32 {
    let changed = if logit > 0.0 {
        logit / rule.repetition
    } else {
        logit * rule.repetition
    };
    changed - (count as f32 * rule.frequency + rule.presence)
}

fn dry(logits: &mut [f32], rule: &SamplingRule, recent: &[u32], breakers: &[u32]) {
    let is_breaker = |&id: &u32| (id as usize) < logits.len() && has_bit(breakers, id);
    let limit = recent.iter().position(is_breaker).unwrap_or(recent.len());
    let mut longest = BTreeMap::new();
    for k in 1..recent.len() {
        let pairs = recent.iter().zip(&recent[k..]).take(limit);
        let length = pairs.take_while(|(a, b)| a == b).count() as u32;
        let entry = longest.entry(recent[k - 1]).or_insert(0);
        *entry = length.max(*entry);
    }
    for (id, length) in longest {
        if length >= rule.dry_allowed.max(1)
            && !has_bit_of(breakers, id, logits.len())
            && let Some(logit) = logits.get_mut(id as usize)
        {
            *logit -= dry_penalty(rule, length);
        }
    }
}

/// Whether the bit of a token is set.
pub fn has_bit(bits: &[u32], token: u32) -> bool {
    bits[token as usize / 32] >> (token % 32) & 1 != 0
}

fn has_bit_of(bits: &[u32], token: u32, n: usize) -> bool {
    (token as usize) < n && has_bit(bits, token)
}

/// The penalty of a token that would continue a repetition of this length; infinite if it is not a number.
pub fn dry_penalty(rule: &SamplingRule, length: u32) -> f32 {
    rule.dry_multiplier * power(rule.dry_base, length - rule.dry_allowed)
}

/// `base^n` by squaring: products alone, which every device rounds alike.
fn power(mut base: f32, mut n: u32) -> f32 {
    let mut product = 1.0;
    while n > 0 {
        if n % 2 == 1 {
            product *= base;
        }
        base *= base;
        n /= 2;
    }
    product
}
