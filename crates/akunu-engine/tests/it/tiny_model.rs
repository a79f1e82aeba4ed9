//! A whole model on the device that runs twins: plans, sessions and sampling.

use crate::support::{TINY, TinyLlama, tiny_llama};
use akunu_engine::{EngineError, GenerateOptions, Model, Sampling, SessionOptions, StopReason};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_types::DType;

fn load(dtype: DType) -> Model {
    let file = tiny_llama(dtype);
    let device = Box::new(TwinDevice::new());
    Model::load(&file.path, device).expect("a whole model")
}

const PROMPT: [u32; 7] = [72, 101, 108, 108, 111, 44, 32];

fn options(max_tokens: usize, max_chain: u32, sampling: Sampling) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        max_chain,
        sampling,
        ignore_end: true,
        ..Default::default()
    }
}

/// The tokens after the prompt, in a new session.
fn tokens(model: &Model, session: SessionOptions, generate: GenerateOptions) -> Vec<u32> {
    let mut session = model.session(session).expect("memory");
    session.feed(&PROMPT).expect("fits");
    let generation = session.generate(generate).expect("options are fine");
    generation.map(|token| token.expect("runs").id).collect()
}

fn drawn(seed: u64) -> Sampling {
    Sampling {
        temperature: 1.0,
        top_k: 40,
        seed,
        repetition_penalty: 1.2,
        ..Sampling::greedy()
    }
}

/// Breaks when a patch, the KV cache or the history is wrong in a chain.
#[test]
fn a_chain_gives_the_tokens_of_single_steps() {
    let model = load(DType::Q8_0);
    for sampling in [Sampling::greedy(), drawn(7)] {
        let single = tokens(&model, SessionOptions::default(), options(12, 1, sampling));
        let chained = tokens(&model, SessionOptions::default(), options(12, 8, sampling));
        assert_eq!(single.len(), 12);
        assert_eq!(single, chained, "{sampling:?}");
    }
}

#[test]
fn a_seed_decides_the_draw() {
    let model = load(DType::Q8_0);
    let with = |seed| {
        tokens(
            &model,
            SessionOptions::default(),
            options(16, 8, drawn(seed)),
        )
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

/// Prefill in one piece, in pieces of every size, and token by token through the decode kernels.
#[test]
fn the_size_of_prefill_chunks_does_not_matter() {
    let model = load(DType::F16);
    let logits = |chunk| {
        let mut session = model
            .session(SessionOptions {
                chunk,
                ..Default::default()
            })
            .expect("memory");
        session.feed(&PROMPT).expect("fits");
        session.logits().expect("there are some")
    };
    let whole = logits(7);
    for chunk in [1, 2, 3, 5] {
        let parts = logits(chunk);
        let error = nmse(&parts, &whole);
        // The kernels sum in another order; the cache rounds to f16 in both.
        assert!(error < 1e-6, "chunk {chunk}: NMSE {error}");
    }
}

#[test]
fn a_second_turn_reuses_the_first() {
    let model = load(DType::Q8_0);
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(&PROMPT).expect("fits");
    let answer: Vec<u32> = session
        .generate(options(5, 4, Sampling::greedy()))
        .expect("options are fine")
        .map(|token| token.expect("runs").id)
        .collect();
    let second = [&PROMPT[..], &answer, &[33, 10]].concat();
    let fed = session.feed(&second).expect("fits");
    assert!(fed.reused >= PROMPT.len() + answer.len() - 1, "{fed:?}");
    let reused = session.logits().expect("there are some");

    let mut fresh = model.session(SessionOptions::default()).expect("memory");
    fresh.feed(&second).expect("fits");
    let error = nmse(&reused, &fresh.logits().expect("some"));
    assert!(error < 1e-6, "NMSE {error}");
}

/// What a caller does not take is rolled back: going on gives what one long run gives.
#[test]
fn stopping_early_and_going_on_is_the_same_as_not_stopping() {
    let model = load(DType::Q8_0);
    let whole = tokens(
        &model,
        SessionOptions::default(),
        options(10, 8, Sampling::greedy()),
    );
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(&PROMPT).expect("fits");
    let first: Vec<u32> = session
        .generate(options(10, 8, Sampling::greedy()))
        .expect("options are fine")
        .take(3)
        .map(|token| token.expect("runs").id)
        .collect();
    assert_eq!(session.tokens(), [&PROMPT[..], &first].concat());
    let rest: Vec<u32> = session
        .generate(options(7, 8, Sampling::greedy()))
        .expect("options are fine")
        .map(|token| token.expect("runs").id)
        .collect();
    assert_eq!([first, rest].concat(), whole);
}

#[test]
fn a_full_context_ends_the_answer_and_refuses_longer_prompts() {
    let model = load(DType::Q8_0);
    let small = SessionOptions {
        context: Some(10),
        ..Default::default()
    };
    let mut session = model.session(small).expect("memory");
    session.feed(&PROMPT).expect("fits");
    let mut generation = session
        .generate(options(100, 8, Sampling::greedy()))
        .expect("fine");
    let n = generation.by_ref().filter(|token| token.is_ok()).count();
    assert_eq!((n, generation.stop()), (4, Some(StopReason::ContextFull)));
    drop(generation);
    let error = session.feed(&[0; 11]).expect_err("too long");
    assert!(
        matches!(
            error,
            EngineError::ContextFull {
                needed: 11,
                context: 10
            }
        ),
        "{error}"
    );
}

#[test]
fn bad_options_are_named() {
    let model = load(DType::Q8_0);
    let mut session = model.session(SessionOptions::default()).expect("memory");
    assert!(matches!(
        session.generate(GenerateOptions::default()).err(),
        Some(EngineError::NothingToContinue)
    ));
    let error = session.feed(&[256]).expect_err("no such token");
    assert!(
        matches!(
            error,
            EngineError::UnknownToken {
                id: 256,
                vocab_size: 256
            }
        ),
        "{error}"
    );
    session.feed(&PROMPT).expect("fits");
    let bad = Sampling {
        top_p: 7.0,
        ..Sampling::greedy()
    };
    let error = session
        .generate(options(1, 1, bad))
        .err()
        .expect("out of range")
        .to_string();
    assert_eq!(
        error,
        "top_p is 7, which must be a number above 0 and at most 1"
    );
    let none = SessionOptions {
        context: Some(0),
        ..Default::default()
    };
    assert!(matches!(
        model.session(none).err(),
        Some(EngineError::ContextSize { found: 0, .. })
    ));
}

/// A token without a row of the embedding would read another token's.
#[test]
fn a_vocabulary_larger_than_the_embedding_is_refused() {
    let file = TinyLlama {
        vocab_rows: 200,
        ..TINY
    }
    .write();
    let device = Box::new(TwinDevice::new());
    let error = Model::load(&file.path, device)
        .err()
        .expect("56 tokens have no row");
    let message = error.to_string();
    assert!(
        message.contains("256") && message.contains("200"),
        "{message}"
    );
}
