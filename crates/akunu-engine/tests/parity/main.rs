//! Real models against llama.cpp, on every level of instructions that this machine has: ids, logits, greedy tokens
//! and, on the best level, perplexity. The figures are printed: run it with `--nocapture` to see them.

#![allow(clippy::print_stdout, reason = "figures for docs/cpu.md")]

mod files;
mod record;

use std::path::Path;

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_engine::{Batch, GenerateOptions, Model, Progress, SequenceId, Session, SessionOptions};
use akunu_tokenizer::EncodeOptions;
use akunu_types::DType;

use crate::files::{check_hash, converted};
use crate::record::{Prompt, Record, text};

const SMOLLM2: (&str, &str) = ("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");

#[test]
fn smollm2_q4_1() {
    let record = Record::read("smollm2-q4_1");
    let path = akunu_assets::path(SMOLLM2.0, SMOLLM2.1);
    check_hash(&path, &record.sha256);
    agrees(&path, &record, 1e-3);
}

#[test]
fn smollm2_q4_0() {
    converted_smollm2_agrees(DType::Q4_0, 1e-3);
}

#[test]
fn smollm2_q8_0() {
    converted_smollm2_agrees(DType::Q8_0, 1e-3);
}

#[test]
fn smollm2_f16() {
    converted_smollm2_agrees(DType::F16, 1e-5);
}

#[test]
fn gemma3_270m() {
    let record = Record::read("gemma3-270m");
    let path = akunu_assets::path("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    check_hash(&path, &record.sha256);
    agrees(&path, &record, 1e-3);
}

/// Breaks when a sum is divided by the number of threads, in a prompt or in decoding.
#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let record = Record::read("smollm2-q4_1");
    let path = akunu_assets::path(SMOLLM2.0, SMOLLM2.1);
    let long = record.prompts.iter().find(|prompt| prompt.ids.len() > 100);
    let ids = &long.expect("a long prompt").ids;
    let bits = |threads: usize| {
        let options = CpuOptions {
            threads: Some(threads),
            ..CpuOptions::default()
        };
        let model = load_with(&path, options);
        let mut session = session(&model);
        let logits = |session: &mut Session, ids: &[u32]| {
            session.feed(ids).expect("fits");
            let logits = session.logits().expect("some");
            logits.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        let of_prompt = logits(&mut session, &ids[..ids.len() - 1]);
        (of_prompt, logits(&mut session, ids))
    };
    let one = bits(1);
    for threads in [2, 3] {
        assert!(bits(threads) == one, "{threads} threads");
    }
}

fn converted_smollm2_agrees(dtype: DType, max_error: f64) {
    let record = Record::read(&format!("smollm2-{dtype}"));
    let path = converted(
        &akunu_assets::path(SMOLLM2.0, SMOLLM2.1),
        dtype,
        &record.sha256,
    );
    agrees(&path, &record, max_error);
}

/// What was recorded of one file: the same ids, logits, tokens and perplexity. All of it on the best level of
/// instructions; on the others the shortest prompt, which is decoding, and one that is a prefill of many rows.
///
/// With quantised weights llama.cpp rounds activations to 8 bits; ours keeps 16 bits, or in a prompt bf16 or 8 bits, unless it
/// is to be exact. The record is therefore of llama.cpp with the same weights widened to f32. Beside it stands how far
/// llama.cpp is from that when it computes with the file as it is. Tokens are compared where ours is exact; otherwise two that are
/// nearly as likely may change places.
fn agrees(path: &Path, record: &Record, max_error: f64) {
    let best = Isa::detect();
    let all: Vec<&Prompt> = record.prompts.iter().collect();
    let long = all.iter().find(|prompt| prompt.ids.len() > 100);
    let two = vec![all[0], long.expect("a long prompt")];
    let levels = Isa::available().into_iter();
    for isa in levels.filter(|&isa| isa != Isa::Scalar) {
        let prompts = if isa == best { &all } else { &two };
        let exact = load(path, isa, true);
        let sessions = logits_agree(&exact, prompts, (&format!("{isa}, exact"), max_error));
        tokens_agree(&exact, prompts, sessions, isa);
        let fast = load(path, isa, false);
        logits_agree(&fast, prompts, (isa.name(), max_error));
        if isa == best {
            perplexity_agrees(&mut session(&fast), record);
        }
    }
}

/// The model on a CPU device of that level, with one thread: several models are tested at once, and the results are
/// the same bits for every number of threads.
fn load(path: &Path, isa: Isa, exact: bool) -> Model {
    let options = CpuOptions {
        isa: Some(isa),
        threads: Some(1),
        exact,
        ..CpuOptions::default()
    };
    load_with(path, options)
}

fn load_with(path: &Path, options: CpuOptions) -> Model {
    let device = CpuDevice::new(options).expect("a level of this machine");
    Model::load(path, Box::new(device)).unwrap_or_else(|error| panic!("{error}"))
}

fn session(model: &Model) -> Session {
    let options = SessionOptions {
        context: Some(1024),
        ..Default::default()
    };
    model.session(options).expect("memory")
}

/// Ids and logits of each prompt, and the sessions that have read them. A prompt of ours may be twice as far from the record as
/// theirs, if that is beyond `max_error`; on the average over the prompts ours must be ten times closer.
fn logits_agree(
    model: &Model,
    prompts: &[&Prompt],
    (level, max_error): (&str, f64),
) -> Vec<Session> {
    let (mut errors, mut sessions) = (Vec::new(), Vec::new());
    for prompt in prompts {
        let name = format!("{level}, after {:.30}", prompt.text);
        assert_eq!(encode(model, &prompt.text), prompt.ids, "{name}");
        let mut session = session(model);
        session.feed(&prompt.ids).expect("fits");
        let found = error(&session.logits().expect("some"), &prompt.logits);
        let bound = max_error.max(2.0 * prompt.rounding);
        assert!(found <= bound, "{name}: NMSE {found:e}");
        errors.push(found);
        sessions.push(session);
    }
    let ours = mean(errors.iter().copied());
    let theirs = mean(prompts.iter().map(|prompt| prompt.rounding));
    println!("{level}: NMSE {ours:.1e} (theirs by rounding {theirs:.1e})");
    let bound = if theirs > 0.0 {
        theirs / 10.0
    } else {
        max_error
    };
    assert!(ours <= bound, "{level}: NMSE {ours:e}, theirs {theirs:e}");
    sessions
}

/// The greedy tokens after each prompt. The first answers alone, the others together.
fn tokens_agree(model: &Model, prompts: &[&Prompt], sessions: Vec<Session>, isa: Isa) {
    let mut batch = model.batch(prompts.len() as u32).expect("memory");
    let mut answers = Vec::new();
    for (at, (prompt, mut session)) in prompts.iter().zip(sessions).enumerate() {
        let name = format!("{isa}, after {:.30}", prompt.text);
        if at == 0 {
            let generation = session.generate(options(prompt)).expect("fine");
            let ours: Vec<u32> = generation.map(|token| token.expect("runs").id).collect();
            same_tokens(&mut session, prompt, (&ours, &name));
        } else {
            let id = batch.join(session, options(prompt)).expect("room");
            answers.push((id, prompt, name));
        }
    }
    let all = answers_of(&mut batch);
    for (id, prompt, name) in answers {
        let ours: Vec<u32> = all
            .iter()
            .filter(|(of, _)| *of == id)
            .map(|(_, token)| *token)
            .collect();
        let mut session = batch.leave(id).expect("it is there");
        same_tokens(&mut session, prompt, (&ours, &name));
    }
}

fn options(prompt: &Prompt) -> GenerateOptions {
    GenerateOptions {
        max_tokens: prompt.tokens.len(),
        ignore_end: true,
        ..Default::default()
    }
}

/// The tokens of all sequences of a batch, in the order in which they come.
fn answers_of(batch: &mut Batch) -> Vec<(SequenceId, u32)> {
    let mut tokens = Vec::new();
    while batch.is_running() {
        for event in batch.step() {
            match event.progress {
                Progress::Token(token) => tokens.push((event.sequence, token.id)),
                Progress::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    tokens
}

fn perplexity_agrees(session: &mut Session, record: &Record) {
    let ours = perplexity(session, record);
    let (theirs, rounded) = (record.perplexity.value, record.perplexity.rounded);
    println!("perplexity {ours:.3} and {theirs:.3} (rounded {rounded:.3})");
    assert!(
        (ours / theirs - 1.0).abs() < 0.005,
        "perplexity {ours}, not {theirs}"
    );
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

fn encode(model: &Model, text: &str) -> Vec<u32> {
    let options = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    model.tokenizer().encode(text, options)
}

/// The error of our logits as a share of the power of theirs, over those that were recorded.
fn error(ours: &[f32], theirs: &[f32]) -> f64 {
    let at = |i: usize| f64::from(ours[i * ours.len() / theirs.len()]);
    let (mut error, mut power) = (0.0, 0.0);
    for (i, &theirs) in theirs.iter().enumerate() {
        error += (at(i) - f64::from(theirs)).powi(2);
        power += f64::from(theirs).powi(2);
    }
    error / power
}

/// The greedy tokens are theirs. Where they part, the two tokens were closer than 0.05 in our logits.
fn same_tokens(session: &mut Session, prompt: &Prompt, (ours, name): (&[u32], &str)) {
    assert_eq!(ours.len(), prompt.tokens.len(), "{name}");
    let mut pairs = ours.iter().zip(&prompt.tokens);
    let Some(at) = pairs.position(|(a, b)| a != b) else {
        return;
    };
    let before = [&prompt.ids[..], &ours[..at]].concat();
    session.feed(&before).expect("fits");
    let logits = session.logits().expect("some");
    let gap = logits[ours[at] as usize] - logits[prompt.tokens[at] as usize];
    println!("{name}: token {at} is {gap} apart");
    assert!(gap < 0.05, "{name}: token {at} is {gap} apart");
}

/// By llama.cpp's method: in each chunk the second half is scored, and a beginning token, where the
/// model wants one, takes the place of a chunk's first.
fn perplexity(session: &mut Session, record: &Record) -> f64 {
    let model = session.model();
    let mut ids = encode(model, &text());
    assert_eq!(ids.len(), record.perplexity.n_tokens);
    let without = EncodeOptions::default();
    let plain = model.tokenizer().encode(&text(), without);
    let begin = (plain.len() < ids.len()).then_some(ids[0]);
    let mut scores = Vec::new();
    for chunk in ids.chunks_exact_mut(record.chunk) {
        chunk[0] = begin.unwrap_or(chunk[0]);
        let scored = session.score(chunk, record.chunk / 2 + 1).expect("fits");
        scores.extend(scored.into_iter().map(f64::from));
    }
    assert_eq!(scores.len(), record.perplexity.n_scored);
    (-scores.iter().sum::<f64>() / scores.len() as f64).exp()
}
