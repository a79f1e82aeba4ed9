//! A model on two devices: the same tokens, but for near ties.

use super::tiny_llama;
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_kernels::case::{Choice, nmse};
use akunu_program::Device;
use akunu_types::DType;

/// Opens a device.
pub type Open = fn() -> Box<dyn Device>;

/// What a device gives: the tokens after a prompt, and the logits after it.
struct Answer {
    ids: Vec<u32>,
    logits: Vec<f32>,
}

/// A prompt of 35 tokens.
fn prompt() -> Vec<u32> {
    (0..35).map(|i| i * 7 % 256).collect()
}

/// The logits after these tokens, and 40 greedy tokens in chains.
fn answer(device: Box<dyn Device>, tokens: &[u32]) -> Answer {
    let file = tiny_llama(DType::Q4_0);
    let model = Model::load(&file.path, device).expect("a whole model");
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(tokens).expect("fits");
    let logits = session.logits().expect("there are some");
    let generate = GenerateOptions {
        max_tokens: 40,
        max_chain: 8,
        sampling: Sampling::greedy(),
        ignore_end: true,
        ..Default::default()
    };
    let generation = session.generate(generate).expect("options are fine");
    let ids = generation.map(|token| token.expect("runs").id).collect();
    Answer { ids, logits }
}

/// Fails when a device gives other logits or other tokens than the reference. Tokens may go apart where both are as good as the
/// best to within the difference of the logits; the result is that near tie.
pub fn assert_same_tokens(name: &str, [device, reference]: [Open; 2]) -> Option<String> {
    let prompt = prompt();
    let (found, expected) = (answer(device(), &prompt), answer(reference(), &prompt));
    let error = nmse(&found.logits, &expected.logits);
    // Sums in another order and half-precision tiles in the prefill products.
    assert!(error < 1e-4, "{name}: NMSE {error}");
    let pairs = found.ids.iter().zip(&expected.ids);
    let Some(at) = pairs
        .clone()
        .position(|(found, expected)| found != expected)
    else {
        assert_eq!(found.ids.len(), expected.ids.len(), "{name}");
        return None;
    };
    let before = [&prompt[..], &expected.ids[..at]].concat();
    let [other, own] = [reference(), device()].map(|device| answer(device, &before).logits);
    let tokens = [expected.ids[at], found.ids[at]];
    let choice = Choice::new(tokens, &other, &own).expect("both are in the vocabulary");
    assert!(choice.is_near_tie(), "{name}, after {at} tokens: {choice}");
    Some(format!("{name}, a near tie after {at} tokens: {choice}"))
}
