//! Answers longer than the context.

use crate::support::{TINY, TinyLlama};
use akunu_engine::{
    GenerateOptions, Model, Overflow, Sampling, Session, SessionOptions, StopReason,
};
use akunu_kernels::twin_device::TwinDevice;
use akunu_types::DType;

const CONTEXT: u32 = 24;

fn load(model: TinyLlama) -> Model {
    let file = model.write();
    let device = Box::new(TwinDevice::new());
    Model::load(&file.path, device).expect("a whole model")
}

fn open(model: &Model) -> Session {
    let options = SessionOptions {
        context: Some(CONTEXT),
        chunk: 4,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn prompt(n: u32) -> Vec<u32> {
    (0..n).map(|i| i * 11 % 256).collect()
}

/// Generates `n` tokens; returns them and why it ended.
fn generate(session: &mut Session, n: usize, overflow: Overflow) -> (Vec<u32>, Option<StopReason>) {
    let options = GenerateOptions {
        max_tokens: n,
        ignore_end: true,
        max_chain: 5,
        overflow,
        sampling: Sampling {
            temperature: 1.0,
            seed: 4,
            ..Sampling::greedy()
        },
        ..Default::default()
    };
    let mut generation = session.generate(options).expect("fine");
    let ids = generation.by_ref().map(|token| token.expect("runs").id);
    (ids.collect(), generation.stop())
}

/// The session's logits against those of a new session with the same tokens.
fn error_after_shift(session: &mut Session) -> f32 {
    let options = SessionOptions {
        context: Some(session.context()),
        chunk: 4,
        ..SessionOptions::default()
    };
    let mut fresh = session.model().session(options).expect("memory");
    fresh.feed(session.tokens()).expect("fits");
    let (shifted, fresh) = (
        session.logits().expect("some"),
        fresh.logits().expect("some"),
    );
    let error: f32 = (shifted.iter().zip(&fresh))
        .map(|(a, b)| (a - b).powi(2))
        .sum();
    error / fresh.iter().map(|a| a * a).sum::<f32>()
}

/// The keys of a first layer depend on their token and position only: shifted ones are those of a
/// fresh run but for the rounding to halves (2^-11 each, squared 2e-7). Keys that are not turned back,
/// turned the other way, or by the other pairing are off by more than 1e-2.
#[test]
fn a_shifted_layer_is_a_fresh_layer() {
    for arch in ["llama", "gemma"] {
        let model = load(TinyLlama {
            arch,
            n_layers: 1,
            dtype: DType::F16,
            ..TINY
        });
        for keep in [0, 3] {
            let mut session = open(&model);
            session.feed(&prompt(CONTEXT)).expect("fits");
            let (ids, _) = generate(&mut session, 2, Overflow::Shift { keep });
            let begin = prompt(CONTEXT);
            let n_dropped = (CONTEXT as usize - keep).div_ceil(2);
            let wanted = [&begin[..keep], &begin[keep + n_dropped..], &ids].concat();
            assert_eq!(session.tokens(), wanted);
            let error = error_after_shift(&mut session);
            assert!(error < 1e-6, "{arch}, keep {keep}: NMSE {error}");
        }
    }
}

/// Windows have given back what a shift would need: what remains is computed again, and is as a fresh run.
#[test]
fn windows_are_filled_again() {
    let model = load(TinyLlama {
        window: Some(8),
        ..TINY
    });
    const LONG: u32 = 280;
    let options = SessionOptions {
        context: Some(LONG),
        chunk: 64,
        ..SessionOptions::default()
    };
    let mut session = model.session(options).expect("memory");
    session.feed(&prompt(LONG)).expect("fits");
    generate(&mut session, 3, Overflow::Shift { keep: 3 });
    assert!(session.tokens().len() < LONG as usize);
    let error = error_after_shift(&mut session);
    assert!(error < 1e-6, "NMSE {error}");
}

#[test]
fn an_answer_goes_on_beyond_the_context() {
    let model = load(TINY);
    let mut session = open(&model);
    session.feed(&prompt(20)).expect("fits");
    let (ids, stop) = generate(&mut session, 100, Overflow::Shift { keep: 4 });
    assert_eq!((ids.len(), stop), (100, Some(StopReason::MaxTokens)));
    assert_eq!(session.tokens()[..4], prompt(4));
    assert!(session.tokens().len() <= CONTEXT as usize + 1);
    assert!(
        ids.ends_with(&session.tokens()[4..]),
        "the newest tokens are there"
    );
}

/// The last token of an answer that filled the context waits for a place.
#[test]
fn a_full_session_goes_on_with_a_shift_only() {
    let model = load(TINY);
    let mut session = open(&model);
    session.feed(&prompt(20)).expect("fits");
    let (ids, stop) = generate(&mut session, 100, Overflow::Stop);
    assert_eq!((ids.len(), stop), (5, Some(StopReason::ContextFull)));
    let error = session.generate(GenerateOptions::default()).err();
    let message = error.expect("no place").to_string();
    assert!(
        message.contains("25 tokens") && message.contains("24"),
        "{message}"
    );
    let (ids, _) = generate(&mut session, 7, Overflow::Shift { keep: 2 });
    assert_eq!(ids.len(), 7);
}

/// Nothing is left to drop when all is to be kept.
#[test]
fn keeping_everything_is_a_stop() {
    let model = load(TINY);
    let mut session = open(&model);
    session.feed(&prompt(20)).expect("fits");
    let (ids, stop) = generate(&mut session, 100, Overflow::Shift { keep: 24 });
    assert_eq!((ids.len(), stop), (5, Some(StopReason::ContextFull)));
}

/// A penalty on the last token only, and so large that no token comes twice in a row. A shift that forgets
/// the token chosen before it penalises another one instead.
#[test]
fn the_token_before_a_shift_is_still_penalised() {
    let model = load(TINY);
    let mut session = open(&model);
    session.feed(&prompt(20)).expect("fits");
    let options = GenerateOptions {
        max_tokens: 150,
        ignore_end: true,
        overflow: Overflow::Shift { keep: 2 },
        sampling: Sampling {
            repetition_penalty: 1e6,
            penalty_window: 1,
            ..Sampling::greedy()
        },
        ..Default::default()
    };
    let generation = session.generate(options).expect("fine");
    let ids: Vec<u32> = generation.map(|token| token.expect("runs").id).collect();
    let repeated = ids.windows(2).position(|pair| pair[0] == pair[1]);
    assert_eq!(repeated, None, "{ids:?}");
}
