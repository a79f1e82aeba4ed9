//! Reading that is watched: told before each chunk how far it is, and ended when the watch says so.

use std::ops::ControlFlow;

use crate::support::tiny_llama;
use crate::support::watched::{Hooks, Watched};
use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{
    CancelFlag, EngineError, GenerateOptions, Model, Progress, Session, SessionOptions, StopReason,
};
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{PlanId, Program};
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
        seen.push((reading.done, reading.total));
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
    assert_eq!(seen, [(0, 10), (4, 10), (8, 10)]);
    assert_eq!(session.tokens(), &PROMPT[..8]);

    let fed = session.feed(&PROMPT).expect("fits");
    assert_eq!((fed.reused, fed.processed), (8, 2));
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

fn cores(threads: usize) -> CpuDevice {
    let options = CpuOptions {
        threads: Some(threads),
        ..CpuOptions::default()
    };
    CpuDevice::new(options).expect("threads")
}

/// Breaks when a chunk is computed to its end after somebody has cancelled it, which takes seconds with a large model; or when
/// what was computed of it stays in the session.
#[test]
fn a_chunk_under_way_is_given_up_and_can_be_read_again() {
    for threads in [1, 2, 4] {
        let file = tiny_llama(DType::Q8_0);
        let model = Model::load(&file.path, Box::new(cores(threads))).expect("a whole model");
        let open = || model.session(SessionOptions::default()).expect("memory");
        let mut session = open();
        session.feed(&PROMPT[..3]).expect("fits");
        let cancel = CancelFlag::default();
        let stopped = session.feed_until(&PROMPT, &cancel, &mut |_| {
            // The flag was looked at before this, and is looked at next within the chunk.
            cancel.cancel();
            ControlFlow::Continue(())
        });
        let stopped = stopped.expect_err("it was cancelled");
        assert!(
            matches!(stopped, EngineError::Cancelled { done: 0, total: 7 }),
            "{stopped}"
        );
        assert_eq!(session.tokens(), &PROMPT[..3]);
        session.feed(&PROMPT).expect("fits");
        let mut fresh = open();
        fresh.feed(&PROMPT[..3]).expect("fits");
        fresh.feed(&PROMPT).expect("fits");
        let [logits, wanted] = [session, fresh].map(|mut of| of.logits().expect("some"));
        assert_eq!(logits, wanted, "{threads} threads");
    }
}

/// Cancels when a program is loaded: after the step has begun, and before anything is computed.
struct CancelAtLoad(CancelFlag);

impl Hooks for CancelAtLoad {
    fn loaded(&mut self, _: PlanId, _: &Program) {
        self.0.cancel();
    }
}

/// Breaks when a batch computes a piece of a prompt to its end that nobody waits for any more.
#[test]
fn a_batch_gives_up_a_prompt_that_only_its_own_sequence_waits_for() {
    let file = tiny_llama(DType::Q8_0);
    let cancel = CancelFlag::default();
    let device = Watched::new(cores(2), CancelAtLoad(cancel.clone()));
    let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
    cancel.reset();
    let mut batch = model.batch(2).expect("memory");
    let session = model.session(SessionOptions::default()).expect("memory");
    let options = GenerateOptions {
        cancel: cancel.clone(),
        ..GenerateOptions::default()
    };
    let id = batch.join_prompt(session, &PROMPT, options).expect("room");
    let [event] = &batch.step()[..] else {
        panic!("one event");
    };
    let Progress::Ended { reason, .. } = event.progress else {
        panic!("{event:?}");
    };
    assert_eq!(reason, StopReason::Cancelled);
    let left = batch.leave(id).expect("it is kept");
    assert_eq!(left.tokens(), PROMPT, "to be read when it is continued");
}
