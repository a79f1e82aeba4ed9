//! Pages of keys and values: shared by those that begin alike, copied when one of them writes, given back in the end.

use crate::support::watched::{Ahead, Watched};
use crate::support::{TINY, TinyLlama};
use std::ops::ControlFlow;

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{
    EngineError, GenerateOptions, KvFormat, Model, ModelOptions, Sampling, Session, SessionOptions,
};
use akunu_kernels::twin_device::TwinDevice;

fn load(model: TinyLlama) -> Model {
    load_with(model, KvFormat::F16)
}

fn load_with(model: TinyLlama, kv: KvFormat) -> Model {
    let options = CpuOptions {
        threads: Some(1),
        ..Default::default()
    };
    let device = CpuDevice::new(options).expect("a CPU");
    let options = ModelOptions {
        kv,
        ..ModelOptions::default()
    };
    Model::load_with(&model.write().path, Box::new(device), options).expect("a whole model")
}

fn session(model: &Model) -> Session {
    let options = SessionOptions {
        context: Some(250),
        chunk: 64,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn prompt(n: u32, salt: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 29 + salt * 53) % 256).collect()
}

fn go_on(session: &mut Session, n: usize, seed: u64) -> Vec<u32> {
    let options = GenerateOptions {
        max_tokens: n,
        ignore_end: true,
        sampling: Sampling {
            temperature: 1.0,
            seed,
            ..Sampling::greedy()
        },
        ..Default::default()
    };
    let generation = session.generate(options).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// Two sessions with the same beginning, another model for each kind of layer; the second reads only what is left of
/// the last page, and gives the logits of one that has read everything.
#[test]
fn a_second_reader_of_the_same_beginning_reads_only_the_rest() {
    let windowed = TinyLlama {
        window: Some(20),
        ..TINY
    };
    let mixed = TinyLlama {
        arch: "gemma3",
        window: Some(20),
        ..TINY
    };
    for kind in [TINY, windowed, mixed] {
        let model = load(kind);
        let mut first = session(&model);
        first.feed(&prompt(200, 1)).expect("fits");
        let wanted = first.logits().expect("some");
        let mut second = session(&model);
        let fed = second.feed(&prompt(200, 1)).expect("fits");
        assert_eq!((fed.reused, fed.processed), (192, 8));
        assert_eq!(second.logits().expect("some"), wanted);
        // Another text shares nothing, be it the same from the second page on.
        let mut other = prompt(200, 1);
        other[0] += 1;
        let fed = session(&model).feed(&other).expect("fits");
        assert_eq!(fed.reused, 0);
    }
}

/// What nobody owns is kept until its place is needed.
#[test]
fn pages_of_a_closed_session_are_found_again_until_they_are_needed() {
    let model = load(TINY);
    model.limit_pool(512);
    session(&model).feed(&prompt(130, 1)).expect("fits");
    assert_eq!(model.pages_in_use(), 0);
    let fed = session(&model).feed(&prompt(130, 1)).expect("fits");
    assert_eq!(fed.reused, 128);
    for salt in 2..6 {
        session(&model).feed(&prompt(240, salt)).expect("fits");
    }
    let mut again = session(&model);
    let fed = again.feed(&prompt(130, 1)).expect("fits");
    assert_eq!(fed.reused, 0, "others were there since");
    let mut fresh = session(&load(TINY));
    fresh.feed(&prompt(130, 1)).expect("fits");
    assert_eq!(again.logits().expect("some"), fresh.logits().expect("some"));
}

/// A fork has no page of its own until it writes; then both go on as if they were alone.
#[test]
fn forks_share_until_they_write() {
    for kv in KvFormat::ALL {
        let model = load_with(TINY, kv);
        let mut trunk = session(&model);
        trunk.feed(&prompt(100, 3)).expect("fits");
        let before = model.pages_in_use();
        let mut forks: Vec<Session> = (0..3).map(|_| trunk.fork()).collect();
        assert_eq!(model.pages_in_use(), before);
        let forks_by_seed = (0..).zip(&mut forks);
        let answers: Vec<Vec<u32>> = forks_by_seed
            .map(|(seed, fork)| go_on(fork, 20, seed))
            .collect();
        assert!(model.pages_in_use() > before);
        for (seed, answer) in (0..).zip(&answers) {
            let mut alone = session(&load_with(TINY, kv));
            alone.feed(&prompt(100, 3)).expect("fits");
            assert_eq!(*answer, go_on(&mut alone, 20, seed));
        }
        assert_ne!(answers[0], answers[1]);
        drop((trunk, forks));
        assert_eq!(model.pages_in_use(), 0);
    }
}

/// A window gives back what it has passed: a long text takes no more pages than the window and what is read at once.
#[test]
fn windows_give_pages_back() {
    let windowed = load(TinyLlama {
        window: Some(8),
        ..TINY
    });
    let mut long = session(&windowed);
    long.feed(&prompt(250, 1)).expect("fits");
    let few = windowed.pages_in_use();
    let whole = load(TINY);
    let mut all = session(&whole);
    all.feed(&prompt(250, 1)).expect("fits");
    assert_eq!(whole.pages_in_use(), 4);
    assert!(few < 4, "{few}");
}

/// A pool that one sequence fills alone is an error with its size, and nothing is lost by it.
#[test]
fn a_sequence_that_the_pool_cannot_hold_is_refused_and_stays_usable() {
    let model = load(TINY);
    model.limit_pool(128);
    let mut session = session(&model);
    let error = session
        .feed(&prompt(200, 1))
        .expect_err("three pages of two");
    assert!(
        matches!(error, EngineError::PoolFull { positions: 128 }),
        "{error}"
    );
    assert!(error.to_string().contains("128 positions"), "{error}");
    session.feed(&prompt(100, 1)).expect("it fits");
    assert_eq!(go_on(&mut session, 5, 1).len(), 5);
}

/// What was rolled back or moved is nobody's beginning.
#[test]
fn only_what_the_tokens_alone_give_is_shared() {
    let model = load(TINY);
    let mut trunk = session(&model);
    trunk.feed(&prompt(250, 1)).expect("fits");
    let options = GenerateOptions {
        max_tokens: 10,
        ignore_end: true,
        overflow: akunu_engine::Overflow::Shift { keep: 4 },
        ..Default::default()
    };
    trunk.generate(options).expect("fine").for_each(drop);
    let moved = trunk.tokens().to_vec();
    let mut fresh = session(&model);
    let fed = fresh.feed(&moved[..moved.len() - 1]).expect("fits");
    assert_eq!(fed.reused, 0, "moved keys are not those of a fresh run");
}

/// Handles are owned: a thread can have a session, and a generation outlives the place where it began.
#[test]
fn sessions_and_generations_travel_between_threads() {
    let model = load(TINY);
    let mut here = session(&model);
    here.feed(&prompt(9, 1)).expect("fits");
    let wanted = go_on(&mut here, 5, 3);
    let mut there = session(&model);
    there.feed(&prompt(9, 1)).expect("fits");
    let options = GenerateOptions {
        max_tokens: 5,
        ignore_end: true,
        sampling: Sampling {
            temperature: 1.0,
            seed: 3,
            ..Sampling::greedy()
        },
        ..Default::default()
    };
    let mut generation = there.into_generation(options).expect("fine");
    drop((model, here));
    let thread = std::thread::spawn(move || {
        let ids: Vec<u32> = generation
            .by_ref()
            .map(|token| token.expect("runs").id)
            .collect();
        (ids, generation.into_session().expect("it was there"))
    });
    let (ids, session) = thread.join().expect("no panic");
    assert_eq!(ids, wanted);
    assert_eq!(session.tokens(), [prompt(9, 1), wanted].concat());
}

/// Two threads that generate with one model at the same time: whoever reads a chain after the other has stepped gets
/// the other's tokens.
#[test]
fn sessions_of_two_threads_do_not_take_each_others_tokens() {
    let model = load(TINY);
    let answer = |model: &Model, salt: u32| {
        let mut session = session(model);
        session.feed(&prompt(20, salt)).expect("fits");
        go_on(&mut session, 150, salt.into())
    };
    let wanted = [1, 2].map(|salt| answer(&load(TINY), salt));
    for _ in 0..10 {
        let threads = [1, 2].map(|salt| {
            let model = model.clone();
            std::thread::spawn(move || answer(&model, salt))
        });
        let found = threads.map(|thread| thread.join().expect("no panic"));
        assert_eq!(found, wanted);
    }
}

/// Two generations take turns, each with a chain under way while the other steps, and the pool grows meanwhile.
#[test]
fn chains_under_way_are_kept_for_their_owners() {
    let file = TINY.write();
    let device = Watched::new(TwinDevice::new(), Ahead);
    let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
    let options = || GenerateOptions {
        max_tokens: 40,
        ignore_end: true,
        ..Default::default()
    };
    let fed = |model: &Model, salt| {
        let mut session = session(model);
        session.feed(&prompt(20, salt)).expect("fits");
        session
    };
    let alone = load(TINY);
    let wanted = [1, 2].map(|salt| {
        let mut session = fed(&alone, salt);
        let generation = session.generate(options()).expect("fine");
        generation
            .map(|token| token.expect("runs").id)
            .collect::<Vec<_>>()
    });
    let mut generations = [1, 2].map(|salt| {
        let session = fed(&model, salt);
        session.into_generation(options()).expect("fine")
    });
    let mut found = [Vec::new(), Vec::new()];
    for round in 0..40 {
        for (generation, found) in generations.iter_mut().zip(&mut found) {
            found.push(generation.next().expect("a token").expect("runs").id);
        }
        if round == 10 {
            let options = SessionOptions {
                context: Some(9000),
                chunk: 600,
                ..SessionOptions::default()
            };
            model.session(options).expect("memory");
        }
    }
    assert_eq!(found, wanted);
}

/// A reading that ends before its first chunk has looked for the pages of its prompt. Fails when the next prompt is given the pages of
/// that one, which another session has read meanwhile.
#[test]
fn a_prompt_that_was_given_up_names_no_pages() {
    let model = load(TINY);
    let [given_up, next] = [1, 2].map(|salt| prompt(100, salt));
    let mut first = session(&model);
    let ended = first.feed_watched(&given_up, &mut |_| ControlFlow::Break(()));
    ended.expect_err("it was ended");
    session(&model).feed(&given_up).expect("fits");
    let fed = first.feed(&next).expect("fits");
    assert_eq!(fed.reused, 0, "other tokens");
    let again = load(TINY);
    let mut fresh = session(&again);
    fresh.feed(&next).expect("fits");
    let [first, fresh] = [first, fresh].map(|mut one| one.logits().expect("some"));
    assert_eq!(first, fresh);
}
