//! `repetition_penalty_f32`: for the last tokens of each row's history, a positive logit is divided by the
//! penalty and a negative one multiplied.
//!
//! The rule of the row's sequence has the penalty and says how many tokens count: `penalty_window`, or all,
//! but no more than the row's length and what the history keeps. A token that occurs several times is
//! penalised once; an id beyond the vocabulary is passed over. A penalty of 1 and an idle row change
//! nothing. A fixed number of threads strides over the tokens, which grow from step to step.

use akunu_types::SharedStruct;
use akunu_types::params::{RepetitionPenaltyParams, Row, SamplingRule};

use super::cases::outputs;
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("repetition_penalty_f32", ""),
    dtype: None,
    family: Family::Sampling,
    source: "repetition_penalty",
    bindings: &[
        read_write(0, "logits", Element::F32),
        read(2, "outputs", Element::U32),
        read(3, "rows", Element::Row),
        read(4, "rules", Element::Rule),
        read(5, "history", Element::U32),
    ],
    params_index: 1,
    params: RepetitionPenaltyParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

/// Most threads of a row.
const MAX_THREADS: u32 = 4096;

/// Threadgroups of 256 along the history, y a row each.
fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: RepetitionPenaltyParams = args.params();
    let Launch { grid, threads, .. } = Launch::elementwise(p.history_stride.min(MAX_THREADS));
    Launch::new([grid[0], p.n_rows, 1], threads)
}

fn required(args: &Args) -> Vec<usize> {
    let p: RepetitionPenaltyParams = args.params();
    vec![
        bytes::<f32>(&[p.n_rows, p.vocab_size]),
        bytes::<u32>(&[p.n_rows]),
        bytes::<Row>(&[p.row_capacity]),
        bytes::<SamplingRule>(&[p.n_sequences]),
        bytes::<u32>(&[p.n_sequences, p.history_stride]),
    ]
}

/// How many tokens count stands in the rows and rules, not in the params: this counts all that the history
/// of a row keeps, and the logits that they can name.
fn work(args: &Args, once: Work) -> Work {
    let p: RepetitionPenaltyParams = args.params();
    let n_sequences = p.n_rows.min(p.n_sequences);
    let touched = bytes::<f32>(&[p.n_rows, p.history_stride.min(p.vocab_size)]);
    let rows = bytes::<Row>(&[p.n_rows.min(p.row_capacity)]);
    once.with(0, Traffic::both(touched))
        .with(2, Traffic::read(rows))
        .with(3, Traffic::read(bytes::<SamplingRule>(&[n_sequences])))
        .with(
            4,
            Traffic::read(bytes::<u32>(&[n_sequences, p.history_stride])),
        )
}

fn twin(t: &mut Twin) {
    let p: RepetitionPenaltyParams = t.params();
    let (outputs, rows) = (t.read::<u32>(2), t.read::<Row>(3));
    let (rules, history) = (t.read::<SamplingRule>(4), t.read::<u32>(5));
    let stride = p.history_stride as usize;
    let logits = t.write::<f32>(0).chunks_exact_mut(p.vocab_size as usize);
    for (logits, &output) in logits.zip(outputs) {
        let row = &rows[output as usize];
        if row.is_active() {
            let rule = &rules[row.sequence as usize];
            let history = &history[row.sequence as usize * stride..][..stride];
            penalise(logits, rule.penalty, counted(rule, row, history));
        }
    }
}

/// The tokens that count, from the oldest on.
fn counted(rule: &SamplingRule, row: &Row, history: &[u32]) -> Vec<u32> {
    let length = row.length as usize;
    let window = match rule.penalty_window {
        0 => length,
        window => window as usize,
    };
    let n_tokens = window.min(length).min(history.len());
    (length - n_tokens..length)
        .map(|token| history[token % history.len()])
        .collect()
}

fn penalise(logits: &mut [f32], penalty: f32, mut tokens: Vec<u32>) {
    tokens.sort_unstable();
    tokens.dedup();
    for id in tokens {
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = if *logit > 0.0 {
                *logit / penalty
            } else {
                *logit * penalty
            };
        }
    }
}

fn cases() -> Vec<Case> {
    let mut rng = Rng::new(4);
    let many: Vec<u32> = (0..600).map(|_| rng.below(90)).collect();
    let of = |window: u32| SamplingRule {
        penalty: 1.5,
        penalty_window: window,
        ..Default::default()
    };
    let off = SamplingRule {
        penalty: 1.0,
        ..Default::default()
    };
    let some = [
        Some((2, 40)),
        Some((0, 200)),
        None,
        Some((1, 70)),
        Some((3, 5)),
    ];
    vec![
        case("one token", &[3], &[of(0)], &[Some((0, 1))]),
        case(
            "repeated, beyond the vocabulary",
            &[5, 9, 5, 5, 1000, 9, 99],
            &[of(0)],
            &[Some((0, 7))],
        ),
        case("no token yet", &[7], &[of(0)], &[Some((0, 0))]),
        case("many duplicates", &many, &[of(0)], &[Some((0, 600))]),
        case("window of 64", &many, &[of(64)], &[Some((0, 600))]),
        case("window of 300", &many, &[of(300)], &[Some((0, 500))]),
        case(
            "a window larger than the history",
            &[5, 7, 5],
            &[of(64)],
            &[Some((0, 3))],
        ),
        case(
            "a history that began again",
            &many,
            &[of(64)],
            &[Some((0, 1230))],
        ),
        case(
            "more tokens than it keeps",
            &many,
            &[of(0)],
            &[Some((0, 5000))],
        ),
        case("a rule each", &many, &[of(0), of(20), off, of(2)], &some),
    ]
}

/// A history of as many tokens for each rule. One product or quotient each: exact.
fn case(label: &str, history: &[u32], rules: &[SamplingRule], of: &[Option<(u32, u32)>]) -> Case {
    const VOCAB: u32 = 100;
    let table = outputs(of);
    let mut logits = Rng::new(6).floats(of.len() * VOCAB as usize, 10.0);
    logits[9] = f32::NEG_INFINITY;
    let params = RepetitionPenaltyParams {
        n_rows: of.len() as u32,
        vocab_size: VOCAB,
        history_stride: (history.len() / rules.len()) as u32,
        n_sequences: rules.len() as u32,
        row_capacity: table.rows.len() as u32,
        ..Default::default()
    };
    Case::new(label, &params, 0.0)
        .bind(&logits)
        .bind(&table.outputs)
        .bind(&table.rows)
        .bind(rules)
        .bind(history)
}
