//! `repetition_penalty_f32`: for each token of `history[0 .. n_tokens]`, a positive logit is divided
//! by the penalty and a negative one multiplied.
//!
//! A token that occurs several times is penalised once; `FC_PENALTY_WINDOW` limits the list to its
//! last tokens; an id beyond the vocabulary is passed over. One thread a token of the window, or a
//! fixed number that strides over a list that grows from step to step.

use akunu_types::SharedStruct;
use akunu_types::params::RepetitionPenaltyParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
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
        read(1, "history", Element::U32),
    ],
    params_index: 2,
    params: RepetitionPenaltyParams::LAYOUT,
    constants: &[Constant::PenaltyWindow],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

/// Threads for a list without a window. `n_tokens` is patched from step to step while the geometry
/// stays.
const THREADS_WITHOUT_WINDOW: u32 = 4096;

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let window = args.constants.u32(Constant::PenaltyWindow);
    Launch::elementwise(window.unwrap_or(THREADS_WITHOUT_WINDOW))
}

fn required(args: &Args) -> Vec<usize> {
    let p: RepetitionPenaltyParams = args.params();
    vec![bytes::<f32>(&[p.vocab_size]), bytes::<u32>(&[p.n_tokens])]
}

/// Of the logits only those of the window are touched.
fn work(args: &Args, once: Work) -> Work {
    let p: RepetitionPenaltyParams = args.params();
    let window = args.constants.u32(Constant::PenaltyWindow);
    let n_listed = window.unwrap_or(p.n_tokens).min(p.n_tokens);
    let touched = bytes::<f32>(&[n_listed.min(p.vocab_size)]);
    once.with(0, Traffic::both(touched))
        .with(1, Traffic::read(bytes::<u32>(&[n_listed])))
}

fn twin(t: &mut Twin) {
    let p: RepetitionPenaltyParams = t.params();
    let window = t.constants().u32(Constant::PenaltyWindow);
    let history = t.read::<u32>(1);
    let begin = window.map_or(0, |window| history.len().saturating_sub(window as usize));
    let mut listed = history[begin..].to_vec();
    listed.sort_unstable();
    listed.dedup();
    let logits = t.write::<f32>(0);
    for id in listed {
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = if *logit > 0.0 {
                *logit / p.penalty
            } else {
                *logit * p.penalty
            };
        }
    }
}

fn cases() -> Vec<Case> {
    let mut rng = Rng::new(4);
    let many: Vec<u32> = (0..600).map(|_| rng.below(90)).collect();
    vec![
        case("one token", &[3], None),
        case(
            "repeated, beyond the vocabulary",
            &[5, 9, 5, 5, 1000, 9, 99],
            None,
        ),
        case("no token yet", &[], None),
        case("many duplicates", &many, None),
        case("window of 64", &many, Some(64)),
        case("window of 300", &many, Some(300)),
        case("a window larger than the list", &[5, 7, 5], Some(64)),
    ]
}

/// One product or quotient each: exact.
fn case(label: &str, history: &[u32], window: Option<u32>) -> Case {
    let mut logits = Rng::new(6).floats(100, 10.0);
    logits[9] = f32::NEG_INFINITY;
    let params = RepetitionPenaltyParams {
        penalty: 1.5,
        n_tokens: history.len() as u32,
        vocab_size: logits.len() as u32,
        ..Default::default()
    };
    let constants = match window {
        Some(window) => Constants::none().with_u32(Constant::PenaltyWindow, window),
        None => Constants::none(),
    };
    Case::new(label, &params, 0.0)
        .constants(constants)
        .bind(&logits)
        .bind(history)
}
