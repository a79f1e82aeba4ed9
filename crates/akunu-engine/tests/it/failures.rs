//! What is left when something fails in the middle: sessions stay usable, and no token is lost or
//! handed out twice.

use std::path::PathBuf;

use crate::flaky::{Hand, flaky};
use crate::support::{TINY, TinyLlama};
use akunu_engine::{
    BatchEvent, CancelFlag, GenerateOptions, Model, Overflow, Progress, Sampling, SequenceId,
    Session, SessionOptions, StopReason,
};

fn load(model: TinyLlama) -> (Model, Hand) {
    let file = model.write();
    let (device, hand) = flaky();
    let model = Model::load(&file.path, device);
    (model.expect("a whole model"), hand)
}

fn prompt(n: u32) -> Vec<u32> {
    (0..n).map(|i| i * 11 % 256).collect()
}

fn fed(model: &Model, context: u32, n: u32) -> Session {
    let options = SessionOptions {
        context: Some(context),
        chunk: 8,
        ..SessionOptions::default()
    };
    let mut session = model.session(options).expect("memory");
    session.feed(&prompt(n)).expect("fits");
    session
}

/// A draw with a penalty: logits that are penalised twice give other tokens.
fn options(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        ignore_end: true,
        sampling: Sampling {
            temperature: 1.0,
            seed: 4,
            repetition_penalty: 1.4,
            ..Sampling::greedy()
        },
        ..Default::default()
    }
}

fn go_on(session: &mut Session, n: usize) -> Vec<u32> {
    let generation = session.generate(options(n)).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

fn logits_of_fresh(model: &Model, tokens: &[u32]) -> Vec<f32> {
    let mut fresh = fed(model, 60, 1);
    fresh.feed(tokens).expect("fits");
    fresh.logits().expect("some")
}

/// Breaks when the reason after an error is that of somebody who cancelled, or when the session loses
/// its place.
#[test]
fn a_generation_that_fails_says_so_and_can_be_repeated() {
    let (model, hand) = load(TINY);
    let wanted = go_on(&mut fed(&model, 60, 9), 8);
    let mut session = fed(&model, 60, 9);
    let mut generation = session.generate(options(8)).expect("fine");
    hand.fail_run_after(2);
    let mut ids = Vec::new();
    let error = generation.by_ref().find_map(|token| match token {
        Ok(token) => {
            ids.push(token.id);
            None
        }
        Err(error) => Some(error),
    });
    assert!(error.expect("a run failed").to_string().contains("planted"));
    assert_eq!(generation.stop(), Some(StopReason::Failed));
    assert!(generation.next().is_none(), "it has ended");
    drop(generation);
    assert_eq!(session.tokens(), [prompt(9), ids.clone()].concat());
    let rest = go_on(&mut session, 8 - ids.len());
    assert_eq!([ids, rest].concat(), wanted);
}

/// Chains grow, so that after some tokens others wait in the queue: none of them may come any more.
#[test]
fn no_token_follows_a_cancel() {
    let (model, _) = load(TINY);
    for n_before in 0..12 {
        let cancel = CancelFlag::default();
        let mut session = fed(&model, 60, 9);
        let wanted = GenerateOptions {
            cancel: cancel.clone(),
            ..options(30)
        };
        let mut generation = session.generate(wanted).expect("fine");
        let taken = generation.by_ref().take(n_before);
        let ids: Vec<u32> = taken.map(|token| token.expect("runs").id).collect();
        cancel.cancel();
        assert!(generation.next().is_none(), "after {n_before} tokens");
        assert_eq!(generation.stop(), Some(StopReason::Cancelled));
        drop(generation);
        assert_eq!(session.tokens(), [prompt(9), ids].concat());
    }
}

fn tokens_of(events: &[BatchEvent], sequence: SequenceId) -> Vec<u32> {
    let token = |event: &BatchEvent| match &event.progress {
        Progress::Token(token) if event.sequence == sequence => Some(token.id),
        _ => None,
    };
    events.iter().filter_map(token).collect()
}

/// The newcomer's first token is chosen by itself, from the logits of its prompt: its neighbour has its own row.
#[test]
fn a_sequence_that_fails_takes_no_token_from_its_neighbour() {
    let (model, hand) = load(TINY);
    let wanted = go_on(&mut fed(&model, 60, 9), 4);
    let mut batch = model.batch(2).expect("memory");
    let going = batch.join(fed(&model, 60, 9), options(4)).expect("room");
    let mut events = batch.step();
    let newcomer = batch.join(fed(&model, 60, 5), options(4)).expect("room");
    hand.fail_run_after(0);
    let step = batch.step();
    let failed = step.iter().find_map(|event| match &event.progress {
        Progress::Failed(error) => Some((event.sequence, error.to_string())),
        _ => None,
    });
    let (sequence, why) = failed.expect("the newcomer failed");
    assert_eq!(sequence, newcomer);
    assert!(why.contains("planted"), "{why}");
    events.extend(step);
    while batch.is_running() {
        events.extend(batch.step());
    }
    assert_eq!(tokens_of(&events, going), wanted);
    assert!(tokens_of(&events, newcomer).is_empty());
    let mut left = batch.leave(newcomer).expect("it keeps its place");
    assert_eq!(go_on(&mut left, 4), go_on(&mut fed(&model, 60, 5), 4));
}

/// A step that began before somebody joined fails: this is told to those who took part in it, and not to who came later.
#[test]
fn a_step_under_way_fails_only_those_who_take_part_in_it() {
    let (model, hand) = load(TINY);
    let mut batch = model.batch(2).expect("memory");
    let first = batch.join(fed(&model, 60, 9), options(8)).expect("room");
    let late = fed(&model, 60, 5);
    // Two steps go well, and the third is under way when somebody joins.
    hand.run_ahead_and_fail_after(2);
    let mut before = batch.step();
    before.extend(batch.step());
    let second = batch.join(late, options(6)).expect("room");
    let mut after = Vec::new();
    while batch.is_running() {
        after.extend(batch.step());
    }
    let failed = |id| {
        let mut of = after.iter().filter(|event| event.sequence == id);
        of.any(|event| matches!(event.progress, Progress::Failed(_)))
    };
    assert!(failed(first) && !failed(second));
    let wanted = go_on(&mut fed(&model, 60, 5), 6);
    assert_eq!(tokens_of(&after, second), wanted);
    let found = [tokens_of(&before, first), tokens_of(&after, first)].concat();
    let wanted = go_on(&mut fed(&model, 60, 9), 8);
    assert_eq!(found, wanted[..found.len()]);
    assert!(found.len() < wanted.len());
}

/// A step fails for two sequences while a third is cancelled: each is told its own reason, once; and whoever joins
/// again goes on where it was.
#[test]
fn a_step_that_fails_loses_no_event_and_no_token() {
    let (model, hand) = load(TINY);
    let mut batch = model.batch(3).expect("memory");
    let cancel = CancelFlag::default();
    let cancelled = GenerateOptions {
        cancel: cancel.clone(),
        ..options(6)
    };
    let ids = [9, 5].map(|n| batch.join(fed(&model, 60, n), options(6)).expect("room"));
    let third = batch.join(fed(&model, 60, 3), cancelled).expect("room");
    let before = batch.step();
    cancel.cancel();
    hand.fail_run_after(0);
    let failed = batch.step();
    assert!(!batch.is_running());
    for id in ids {
        let told: Vec<&Progress> = failed
            .iter()
            .filter(|event| event.sequence == id)
            .map(|event| &event.progress)
            .collect();
        let [Progress::Failed(error)] = told[..] else {
            panic!("{told:?}");
        };
        assert!(error.to_string().contains("planted"), "{error}");
    }
    let ends = failed.iter().filter(|event| event.sequence == third);
    let ends: Vec<bool> = ends
        .map(|event| {
            let reason = StopReason::Cancelled;
            matches!(&event.progress, Progress::Ended { reason: found, .. } if *found == reason)
        })
        .collect();
    assert_eq!(ends, [true], "the end, once");
    let again = ids.map(|id| {
        let session = batch.leave(id).expect("it keeps its place");
        batch.join(session, options(5)).expect("room")
    });
    let mut after = Vec::new();
    while batch.is_running() {
        after.extend(batch.step());
    }
    for ((n, id), again) in [9, 5].into_iter().zip(ids).zip(again) {
        let wanted = go_on(&mut fed(&model, 60, n), 6);
        let tokens = [tokens_of(&before, id), tokens_of(&after, again)].concat();
        assert_eq!(tokens, wanted, "prompt of {n}");
    }
}

fn saved(model: &Model, n: u32) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("chat.session");
    fed(model, 60, n).save(&path).expect("disk");
    (folder, path)
}

/// The file is cut off when the device gets the first of its bytes: whoever reads the rest only then
/// has half a session. 50 tokens are more than a buffered reader holds.
#[test]
fn a_file_is_read_to_its_end_before_the_session_changes() {
    let (model, hand) = load(TINY);
    let (_folder, path) = saved(&model, 50);
    let mut session = fed(&model, 60, 7);
    let cut = path.clone();
    hand.on_next_write(move || std::fs::write(&cut, b"").expect("disk"));
    session.restore(&path).expect("it was whole");
    assert_eq!(session.tokens(), prompt(50));
    let wanted = logits_of_fresh(&model, &prompt(50));
    assert_eq!(session.logits().expect("some"), wanted);
}

/// Each write of a restore fails once: the session is empty then, and not a mixture.
#[test]
fn a_restore_that_fails_on_the_device_leaves_an_empty_session() {
    let (model, hand) = load(TINY);
    let (_folder, path) = saved(&model, 20);
    // Keys and values of two layers.
    for n_written in 0..4 {
        let mut session = fed(&model, 60, 7);
        hand.fail_write_after(n_written);
        let error = session.restore(&path).expect_err("a failure was planted");
        assert!(error.to_string().contains("planted"), "{error}");
        assert!(session.tokens().is_empty());
        session.feed(&prompt(9)).expect("it can be used");
        let wanted = logits_of_fresh(&model, &prompt(9));
        assert_eq!(session.logits().expect("some"), wanted);
    }
}

/// The context is full by an answer, and the session neither computes nor goes on; with fewer tokens it
/// does both, even where a ring has lost what lies before.
#[test]
fn a_full_session_goes_on_after_a_step_back() {
    let windowed = TinyLlama {
        window: Some(8),
        ..TINY
    };
    for kind in [TINY, windowed] {
        let (model, _) = load(kind);
        let mut session = fed(&model, 24, 20);
        go_on(&mut session, 100);
        assert_eq!(session.tokens().len(), 25, "one waits for a place");
        session.logits().expect_err("there is no place for it");
        session.truncate(12);
        assert_eq!(session.tokens(), prompt(12));
        assert_eq!(
            session.logits().expect("some"),
            logits_of_fresh(&model, &prompt(12))
        );
        session.truncate(99);
        let wanted = go_on(&mut fed(&model, 24, 12), 5);
        assert_eq!(go_on(&mut session, 5), wanted);
        session.clear();
        session.feed(&prompt(3)).expect("fits");
        assert_eq!(
            session.logits().expect("some"),
            logits_of_fresh(&model, &prompt(3))
        );
    }
}

/// The keys have moved when the device fails: those of the old tokens are gone.
#[test]
fn a_shift_that_fails_is_not_taken_for_the_old_cache() {
    let (model, hand) = load(TINY);
    let mut session = fed(&model, 24, 24);
    let shifting = GenerateOptions {
        overflow: Overflow::Shift { keep: 2 },
        ..options(9)
    };
    let mut generation = session.generate(shifting).expect("fine");
    // The first run chooses a token; the second makes room for it.
    hand.fail_run_after(1);
    generation.next().expect("a token").expect("runs");
    generation.next().expect("an error").expect_err("planted");
    drop(generation);
    session.truncate(12);
    assert_eq!(
        session.logits().expect("some"),
        logits_of_fresh(&model, &prompt(12))
    );
}
