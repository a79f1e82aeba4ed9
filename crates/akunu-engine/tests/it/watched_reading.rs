//! Reading that is watched: told before each chunk how far it is, and ended when the watch says so.

use std::ops::ControlFlow;

use crate::support::tiny_llama;
use akunu_engine::{EngineError, Fed, Model, Reading, Session, SessionOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_types::DType;

const PROMPT: [u32; 10] = [72, 101, 108, 108, 111, 44, 32, 119, 111, 114];

fn load() -> Model {
    let file = tiny_llama(DType::Q8_0);
    let device = Box::new(TwinDevice::new());
    Model::load(&file.path, device).expect("a whole model")
}

fn open(model: &Model) -> Session {
    let options = SessionOptions {
        chunk: 4,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

/// Breaks when a chunk runs before the watch is asked, or after it said no.
#[test]
fn a_prompt_is_read_until_the_watch_ends_it_and_then_goes_on_from_there() {
    let model = load();
    let mut session = open(&model);
    let mut seen = Vec::new();
    let stopped = session.feed_watched(&PROMPT, &mut |reading| {
        seen.push(reading);
        match reading.done {
            0..8 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    let stopped = stopped.expect_err("it was ended");
    assert!(
        matches!(stopped, EngineError::Cancelled { done: 8, total: 10 }),
        "{stopped}"
    );
    let at = |done| Reading { done, total: 10 };
    assert_eq!(seen, [at(0), at(4), at(8)]);
    assert_eq!(session.tokens(), &PROMPT[..8]);

    let fed = session.feed(&PROMPT).expect("fits");
    let (reused, processed) = (8, 2);
    assert_eq!(fed, Fed { reused, processed });
    let mut fresh = open(&model);
    fresh.feed(&PROMPT).expect("fits");
    let logits = session.logits().expect("there are some");
    assert_eq!(logits, fresh.logits().expect("there are some"));
}

/// The tokens that are known already are not counted: only the rest takes time.
#[test]
fn what_is_known_already_is_not_part_of_the_reading() {
    let model = load();
    let mut session = open(&model);
    session.feed(&PROMPT[..5]).expect("fits");
    let mut seen = Vec::new();
    let fed = session.feed_watched(&PROMPT, &mut |reading| {
        seen.push((reading.done, reading.total));
        ControlFlow::Continue(())
    });
    assert_eq!(fed.expect("nobody ended it").reused, 5);
    assert_eq!(seen, [(0, 5), (4, 5)]);
}

/// A text that is scored can be ended too, and the session is empty after it as always.
#[test]
fn scoring_is_ended_between_chunks() {
    let model = load();
    let mut session = open(&model);
    let stopped = session.score_watched(&PROMPT, 1, &mut |reading| match reading.done {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    let stopped = stopped.expect_err("it was ended");
    assert!(
        matches!(stopped, EngineError::Cancelled { done: 4, total: 10 }),
        "{stopped}"
    );
    assert!(session.tokens().is_empty());
}
