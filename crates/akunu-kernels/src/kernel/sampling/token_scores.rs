//! `token_scores_f32`: records the log probability of each row's token, and the best tokens with theirs.
//!
//! ```text
//! ln p(token) = logit - best - ln(sum of exp(logits - best))
//! ```
//!
//! The record has a place for each row of each step: `scores` (max_steps, record_stride, 1 + max_best), the token's own
//! first, and `best_tokens` (max_steps, record_stride, max_best). Row i of a step goes to place i of round
//! `step % max_steps`. The rule of the row's sequence says how many of the best are recorded; a rule that asks for nothing
//! and an idle row leave the record as it is. Among equals the first token comes first; where there are fewer numbers than
//! asked for, the rest is -inf and [`NO_TOKEN`].

use std::cmp::Ordering;

use akunu_types::params::{Row, SamplingRule, TokenScoresParams};

use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: TokenScoresParams at 4) {
        logits: read f32 = [p.n_rows, p.vocab_size],
        tokens: read u32 = [p.n_rows],
        scores: change f32 = [p.max_steps * p.record_stride, p.max_best + 1],
        best_tokens: change u32 = [p.max_steps * p.record_stride, p.max_best],
        outputs: read u32 = [p.n_rows],
        rows: read Row = [p.row_capacity],
        rules: read SamplingRule = [p.n_sequences],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("token_scores_f32", ""),
    family: Family::Sampling,
    source: "token_scores",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// Stands where there are fewer tokens than asked for.
pub const NO_TOKEN: u32 = u32::MAX;

/// A record that is too narrow, or has no steps, gets an empty grid, which the plan check refuses.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: TokenScoresParams = args.params();
    let fits = p.n_rows <= p.record_stride && p.max_steps > 0 && p.vocab_size > 0;
    let n_rows = if fits { p.n_rows } else { 0 };
    Launch::new([n_rows, 1, 1], [chip.max_threads.min(1024), 1, 1])
}

/// Of the record a row each is written.
fn work(args: &Args, once: Work) -> Work {
    let p: TokenScoresParams = args.params();
    let n_sequences = p.n_rows.min(p.n_sequences);
    once.with(
        Buffers::PLACES.scores,
        Traffic::written(bytes::<f32>(&[p.n_rows, p.max_best + 1])),
    )
    .with(
        Buffers::PLACES.best_tokens,
        Traffic::written(bytes::<u32>(&[p.n_rows, p.max_best])),
    )
    .with(
        Buffers::PLACES.rows,
        Traffic::read(bytes::<Row>(&[p.n_rows.min(p.row_capacity)])),
    )
    .with(
        Buffers::PLACES.rules,
        Traffic::read(bytes::<SamplingRule>(&[n_sequences])),
    )
}

fn twin(t: &mut Twin) {
    let p: TokenScoresParams = t.params();
    let Slices {
        logits,
        tokens,
        scores,
        best_tokens,
        outputs,
        rows,
        rules,
    } = Slices::of(t);
    let (outputs, rows, rules) = (outputs, rows, rules);
    let (n, max_best) = (p.vocab_size as usize, p.max_best as usize);
    for (at, &output) in outputs.iter().enumerate() {
        let row = &rows[output as usize];
        if !row.is_active() || rules[row.sequence as usize].n_scores == 0 {
            continue;
        }
        let logits = &logits[at * n..][..n];
        let numbers = || logits.iter().copied().filter(|logit| !logit.is_nan());
        let best = numbers().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = numbers().map(|logit| f64::from(logit - best).exp()).sum();
        let score = |logit: f32| (f64::from(logit - best) - sum.ln()) as f32;
        let n_best = rules[row.sequence as usize].n_scores as usize - 1;
        let n_best = n_best.min(max_best).min(n);
        let place = (row.step % p.max_steps * p.record_stride) as usize + at;
        let own = &mut scores[place * (max_best + 1)..];
        own[0] = score(logits[tokens[at] as usize]);
        let mut ranked: Vec<usize> = (0..n).filter(|&id| !logits[id].is_nan()).collect();
        ranked.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap_or(Ordering::Equal));
        for rank in 0..n_best {
            let id = ranked.get(rank);
            own[1 + rank] = id.map_or(f32::NEG_INFINITY, |&id| score(logits[id]));
        }
        let own = &mut best_tokens[place * max_best..];
        for (rank, own) in own[..n_best].iter_mut().enumerate() {
            *own = ranked.get(rank).map_or(NO_TOKEN, |&id| id as u32);
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::sampling::cases::outputs;

    pub fn all() -> Vec<Case> {
        let mut rng = Rng::new(41);
        let asks = |n_scores| SamplingRule {
            n_scores,
            ..SamplingRule::PLAIN
        };
        let mut special = rng.floats(700, 4.0);
        (special[3], special[400]) = (f32::NAN, f32::NEG_INFINITY);
        special[90..95].fill(5.0);
        let some = [Some((2, 9)), None, Some((0, 1)), Some((1, 5))];
        vec![
            case(
                "the token alone",
                &rng.floats(1200, 8.0),
                &[asks(1)],
                &[Some((0, 4))],
            ),
            case(
                "the best three",
                &rng.floats(1200, 8.0),
                &[asks(4)],
                &[Some((0, 4))],
            ),
            case(
                "more than there is room for",
                &rng.floats(900, 8.0),
                &[asks(21)],
                &[Some((0, 7))],
            ),
            case(
                "fewer tokens than asked for",
                &[1.0, 2.0],
                &[asks(5)],
                &[Some((0, 1))],
            ),
            case("ties, NaN, -inf", &special, &[asks(5)], &[Some((0, 4))]),
            case(
                "rows of several sequences",
                &rng.floats(4 * 300, 5.0),
                &[asks(3), asks(0), asks(6)],
                &some,
            ),
        ]
    }

    /// Sums of at most 1200 floats, and a logarithm.
    fn case(
        label: &str,
        logits: &[f32],
        rules: &[SamplingRule],
        of: &[Option<(u32, u32)>],
    ) -> Case {
        let mut table = outputs(of);
        for (at, row) in table.rows.iter_mut().enumerate() {
            row.step = at as u32 * 2;
        }
        let params = TokenScoresParams {
            n_rows: of.len() as u32,
            vocab_size: (logits.len() / of.len()) as u32,
            n_sequences: rules.len() as u32,
            row_capacity: table.rows.len() as u32,
            record_stride: of.len() as u32 + 1,
            max_steps: 3,
            max_best: 5,
            ..Default::default()
        };
        let places = (params.max_steps * params.record_stride) as usize;
        Case::new(label, &params, 1e-11)
            .bind(logits)
            .bind(&vec![1u32; of.len()])
            .bind(&vec![7f32; places * 6])
            .bind(&vec![7u32; places * 5])
            .bind(&table.outputs)
            .bind(&table.rows)
            .bind(rules)
    }
}
