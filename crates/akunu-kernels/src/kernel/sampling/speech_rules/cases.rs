//! The cases of `speech_rules`.

use super::*;
use crate::case::{Case, Rng};
use crate::kernel::sampling::cases::outputs;

/// The first time of the cases, and the token before which everything is text.
const T: u32 = 640;

const END: u32 = 600;

const VOCABULARY: u32 = 1103;

const HISTORY: u32 = 16;

/// A row of a case: its tokens, the first of which belong to the prompt, and whether it has times.
struct Transcript {
    prompt: u32,
    said: Vec<u32>,
    has_times: bool,
}

fn with_times(said: &[u32]) -> Transcript {
    Transcript {
        prompt: 3,
        said: said.to_vec(),
        has_times: true,
    }
}

fn without_times(said: &[u32]) -> Transcript {
    Transcript {
        has_times: false,
        ..with_times(said)
    }
}

pub fn all() -> Vec<Case> {
    let last = VOCABULARY - 1;
    let long: Vec<u32> = [T + 2, T + 30].into_iter().chain(0..40).collect();
    let plain = |label: &str, transcript| case(label, &[Some(transcript)], |_| ());
    let mut cases = vec![
        plain("the first token", with_times(&[])),
        plain("the first token, without times", without_times(&[])),
        plain("another token, without times", without_times(&[7])),
        plain("a single time at the beginning", with_times(&[T])),
        plain("a single time after text", with_times(&[T, 5, T + 9])),
        plain("a pair", with_times(&[T, 5, T + 9, T + 9])),
        plain("text after a pair", with_times(&[T, 5, T + 9, T + 9, 6])),
        plain("the last time, single", with_times(&[T, 5, last])),
        plain(
            "text after the last time",
            with_times(&[T, 5, last, last, 6]),
        ),
        plain("no time was said", with_times(&[5, 6, 7])),
        plain("more was said than the history keeps", with_times(&long)),
    ];
    cases.push(plain(
        "the history begins again",
        Transcript {
            prompt: 30,
            ..with_times(&[T + 1, 4, 5])
        },
    ));
    let after_text = || [Some(with_times(&[T, 7]))];
    cases.extend([
        case("text is more probable", &after_text(), |logits| {
            logits[9] = 12.0
        }),
        case("each time is less probable", &after_text(), |logits| {
            logits.fill(0.0);
            logits[9] = 5.5;
        }),
        case("NaN and inf", &after_text(), |logits| {
            (logits[3], logits[T as usize + 4]) = (f32::NAN, f32::NAN);
            (logits[4], logits[T as usize + 5]) = (f32::INFINITY, f32::INFINITY);
        }),
        case("everything is forbidden", &after_text(), |logits| {
            logits.fill(f32::NEG_INFINITY);
        }),
        no_times_at_all(),
    ]);
    let several = [
        Some(with_times(&[])),
        None,
        Some(without_times(&[3, 4])),
        Some(with_times(&[T, 5, T + 9])),
    ];
    cases.push(case("several windows", &several, |_| ()));
    cases
}

/// A vocabulary that ends where its times would begin.
fn no_times_at_all() -> Case {
    let mut case = case("no times at all", &[Some(with_times(&[]))], |_| ());
    let mut params: SpeechRulesParams = ROW.args(case.params.as_bytes(), &case.constants).params();
    params.first_time = VOCABULARY;
    case.params = crate::plan::Params::of(&params);
    case
}

/// Logits stay or become -inf: exact. Every row has a sequence of its own.
fn case(label: &str, of: &[Option<Transcript>], change: fn(&mut [f32])) -> Case {
    let of_row = |(sequence, row): (u32, &Option<Transcript>)| {
        let row = row.as_ref()?;
        Some((sequence, row.prompt + row.said.len() as u32))
    };
    let table = outputs(&(0..).zip(of).map(of_row).collect::<Vec<_>>());
    let params = SpeechRulesParams {
        n_rows: of.len() as u32,
        vocab_size: VOCABULARY,
        history_stride: HISTORY,
        n_sequences: of.len() as u32,
        row_capacity: table.rows.len() as u32,
        end: END,
        first_time: T,
        n_first_times: 51,
    };
    let mut history = vec![T; (HISTORY * params.n_sequences) as usize];
    let mut rules = vec![SamplingRule::PLAIN; of.len()];
    for (at, row) in of.iter().enumerate() {
        let Some(row) = row else { continue };
        rules[at].transcript_start = row.prompt;
        rules[at].has_times = u32::from(row.has_times);
        for (number, &token) in (row.prompt..).zip(&row.said) {
            history[at * HISTORY as usize + (number % HISTORY) as usize] = token;
        }
    }
    let mut rng = Rng::new(8);
    let mut logits = rng.floats(of.len() * VOCABULARY as usize, 4.0);
    logits
        .chunks_exact_mut(VOCABULARY as usize)
        .for_each(change);
    let words = 2 * VOCABULARY.div_ceil(32);
    let masks: Vec<u32> = (0..words)
        .map(|_| (rng.bits() | rng.bits() | rng.bits()) as u32)
        .collect();
    Case::new(label, &params, 0.0)
        .bind(&logits)
        .bind(&masks)
        .bind(&history)
        .bind(&table.outputs)
        .bind(&table.rows)
        .bind(&rules)
}
