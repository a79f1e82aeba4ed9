//! What penalties count, and answers that loop.

use crate::support::TINY;
use akunu_engine::{
    EngineError, GenerateOptions, Model, Overflow, Sampling, Session, SessionOptions, StopReason,
};
use akunu_kernels::twin_device::TwinDevice;

/// So large that a token that counts is never chosen.
const FORBIDS: f32 = 1e6;

fn open(options: SessionOptions) -> Session {
    let file = TINY.write();
    let model = Model::load(&file.path, Box::new(TwinDevice::new())).expect("loads");
    model.session(options).expect("memory")
}

fn session() -> Session {
    open(SessionOptions::default())
}

fn presence(penalise_prompt: bool) -> GenerateOptions {
    GenerateOptions {
        max_tokens: 6,
        ignore_end: true,
        sampling: Sampling {
            presence_penalty: FORBIDS,
            penalty_window: 0,
            penalise_prompt,
            ..Sampling::greedy()
        },
        ..GenerateOptions::default()
    }
}

fn ids(session: &mut Session, options: GenerateOptions) -> Vec<u32> {
    let generation = session.generate(options).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// A prompt that ends just before a token that it has already, and this token: the most likely one.
fn prompt_with_its_answer() -> (Session, Vec<u32>, u32) {
    let mut session = session();
    let mut prompt = vec![3, 1, 4, 1, 5];
    loop {
        session.feed(&prompt).expect("fits");
        let greedy = GenerateOptions {
            max_tokens: 1,
            ignore_end: true,
            ..GenerateOptions::default()
        };
        let next = ids(&mut session, greedy)[0];
        if prompt.contains(&next) {
            return (session, prompt, next);
        }
        prompt.push(next);
    }
}

/// Breaks when the words of a question are penalised in its answer, or when those of the answer are not.
#[test]
fn the_prompt_is_not_penalised_unless_asked_for() {
    let (mut session, prompt, best) = prompt_with_its_answer();
    session.feed(&prompt).expect("fits");
    let answer = ids(&mut session, presence(false));
    assert_eq!(answer[0], best);
    assert!(!answer[1..].contains(&best), "{answer:?}");

    session.feed(&prompt).expect("fits");
    let strict = ids(&mut session, presence(true));
    let is_new = |(at, id): (usize, &u32)| !prompt.contains(id) && !strict[..at].contains(id);
    assert!(strict.iter().enumerate().all(is_new), "{strict:?}");
}

/// Breaks when what an answer has written is taken for a prompt when the answer goes on.
#[test]
fn an_answer_that_goes_on_counts_from_its_beginning() {
    let (mut session, prompt, _) = prompt_with_its_answer();
    session.feed(&prompt).expect("fits");
    let whole = ids(&mut session, presence(false));
    session.feed(&prompt).expect("fits");
    let part = |n| GenerateOptions {
        max_tokens: n,
        n_prompt: Some(prompt.len()),
        ..presence(false)
    };
    let first = ids(&mut session, part(2));
    let rest = ids(&mut session, part(4));
    assert_eq!([first, rest].concat(), whole);
}

/// Breaks when a shift moves the end of the prompt away from the tokens: then some of the answer no longer count, and come
/// twice.
#[test]
fn the_prompt_still_ends_where_it_ends_after_a_shift() {
    let mut session = open(SessionOptions {
        context: Some(24),
        ..SessionOptions::default()
    });
    session
        .feed(&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])
        .expect("fits");
    let options = GenerateOptions {
        max_tokens: 60,
        overflow: Overflow::Shift { keep: 2 },
        sampling: Sampling {
            penalty_window: 4,
            ..presence(false).sampling
        },
        ..presence(false)
    };
    let answer = ids(&mut session, options);
    assert_eq!(answer.len(), 60);
    for (at, id) in answer.iter().enumerate() {
        let window = &answer[at.saturating_sub(4)..at];
        assert!(!window.contains(id), "token {at} of {answer:?}");
    }
}

/// A token with a large bias is chosen again and again.
#[test]
fn an_answer_that_loops_ends() {
    let mut session = session();
    let looping = |loop_window| GenerateOptions {
        max_tokens: 50,
        ignore_end: true,
        logit_bias: vec![(7, FORBIDS)],
        loop_window,
        ..GenerateOptions::default()
    };
    let mut end = |loop_window| {
        session.feed(&[3, 1, 4]).expect("fits");
        let mut generation = session.generate(looping(loop_window)).expect("fine");
        let n = generation.by_ref().filter(Result::is_ok).count();
        let stop = generation.stop();
        drop(generation);
        (n, stop, session.tokens().len())
    };
    assert_eq!(end(None), (50, Some(StopReason::MaxTokens), 53));
    assert_eq!(end(Some(12)), (12, Some(StopReason::Loop), 15));
    let refused = session.generate(looping(Some(0))).err();
    assert!(
        matches!(
            refused,
            Some(EngineError::Sampling {
                option: "loop_window",
                ..
            })
        ),
        "{refused:?}"
    );
}
