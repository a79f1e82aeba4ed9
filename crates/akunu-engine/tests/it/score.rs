//! Scores of a text against the logits of its beginnings.

use crate::support::tiny_llama;
use akunu_engine::{EngineError, Model, SessionOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_types::DType;

const TEXT: [u32; 11] = [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108];

fn load() -> Model {
    let file = tiny_llama(DType::F16);
    let device = Box::new(TwinDevice::new());
    Model::load(&file.path, device).expect("a whole model")
}

fn with_chunk(chunk: u32) -> SessionOptions {
    SessionOptions {
        chunk,
        ..Default::default()
    }
}

/// ln p of `token` after `before`, by the formula itself.
fn expected(model: &Model, before: &[u32], token: u32) -> f64 {
    let mut session = model.session(with_chunk(32)).expect("memory");
    session.feed(before).expect("fits");
    let logits = session.logits().expect("there are some");
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    f64::from(logits[token as usize]) - sum.ln()
}

/// A row too early or too late, a chunk's first row left out, or logits of another block differ here.
#[test]
fn a_score_is_the_log_probability_after_the_tokens_before() {
    let model = load();
    for (chunk, from) in [(32, 1), (4, 1), (4, 5), (4, 6), (3, 10), (1, 7)] {
        let mut session = model.session(with_chunk(chunk)).expect("memory");
        session.feed(&[9, 8, 7]).expect("fits");
        let scores = session.score(&TEXT, from).expect("runs");
        assert_eq!(scores.len(), TEXT.len() - from);
        for (at, &score) in (from..).zip(&scores) {
            let wanted = expected(&model, &TEXT[..at], TEXT[at]);
            // Products of one and of many rows sum in another order.
            let error = (f64::from(score) - wanted).abs();
            assert!(error < 1e-3, "chunk {chunk}, token {at}: {score}, {wanted}");
        }
        assert!(session.tokens().is_empty());
    }
}

#[test]
fn the_first_token_has_no_score() {
    let model = load();
    let mut session = model.session(with_chunk(4)).expect("memory");
    let all = session.score(&TEXT, 0).expect("runs");
    assert_eq!(all, session.score(&TEXT, 1).expect("runs"));
    for (text, from) in [(&TEXT[..], 20), (&TEXT[..1], 0)] {
        assert!(session.score(text, from).expect("runs").is_empty());
    }
}

#[test]
fn what_cannot_be_scored_is_named() {
    let model = load();
    let small = SessionOptions {
        context: Some(8),
        chunk: 4,
        ..SessionOptions::default()
    };
    let mut session = model.session(small).expect("memory");
    let long = session.score(&TEXT, 1).expect_err("more than the context");
    assert!(matches!(long, EngineError::ContextFull { needed: 11, .. }));
    let unknown = session.score(&[1, 256], 1).expect_err("no such token");
    assert!(matches!(unknown, EngineError::UnknownToken { id: 256, .. }));
}

/// Fails when a model whose weights are damaged gets a score.
#[test]
fn scores_that_are_no_numbers_are_an_error() {
    let file = tiny_llama(DType::F16);
    let mut bytes = std::fs::read(&file.path).expect("written");
    // NaN as an f32, and as every second f16.
    let end = bytes.len() - 64;
    for word in bytes[end..].chunks_exact_mut(4) {
        word.copy_from_slice(&f32::NAN.to_le_bytes());
    }
    std::fs::write(&file.path, bytes).expect("written");
    let model = Model::load(&file.path, Box::new(TwinDevice::new())).expect("a whole model");
    let mut session = model.session(with_chunk(32)).expect("memory");
    let error = session.score(&TEXT, 1).expect_err("no numbers");
    assert!(matches!(error, EngineError::NotNumbers { .. }), "{error}");
}

/// The best tokens before each of a text, with the probabilities that add up to one over the whole vocabulary.
#[test]
fn scores_come_with_the_most_likely_tokens() {
    let model = load();
    let mut session = model.session(with_chunk(4)).expect("memory");
    let plain = session.score(&TEXT, 3).expect("runs");
    let best = session.score_best(&TEXT, 3, 256).expect("runs");
    assert_eq!(best.len(), plain.len());
    for ((of, chosen), token) in best.iter().zip(plain).zip(&TEXT[3..]) {
        assert_eq!(of.chosen, chosen);
        let listed = of.top.iter().find(|(id, _)| id == token);
        assert_eq!(listed.map(|(_, logprob)| *logprob), Some(chosen));
        assert!(of.top.is_sorted_by(|a, b| a.1 >= b.1));
        let sum: f64 = of
            .top
            .iter()
            .map(|(_, logprob)| f64::from(*logprob).exp())
            .sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }
    let few = session.score_best(&TEXT, 3, 2).expect("runs");
    assert_eq!(few[0].top, best[0].top[..2]);
}
