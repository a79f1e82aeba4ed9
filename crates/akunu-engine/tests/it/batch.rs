//! Sequences that step together give what each gives alone.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::support::watched::{Hooks, Watched};
use crate::support::{TINY, TinyLlama};
use akunu_engine::{
    Batch, EngineError, GenerateOptions, Model, Overflow, Progress, Sampling, SequenceId, Session,
    SessionOptions, StopReason,
};
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{Checked, DeviceError, PlanId, Program};

fn load(model: TinyLlama) -> Model {
    let file = model.write();
    let device = Box::new(TwinDevice::new());
    Model::load(&file.path, device).expect("a whole model")
}

/// A prompt of `n` tokens, another one for each `n`.
fn prompt(n: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 29 + n * 7) % 256).collect()
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

fn options(max_tokens: usize, sampling: Sampling) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        sampling,
        ignore_end: true,
        ..Default::default()
    }
}

fn drawn(seed: u64, repetition_penalty: f32) -> Sampling {
    Sampling {
        temperature: 1.0,
        top_k: 40,
        seed,
        repetition_penalty,
        ..Sampling::greedy()
    }
}

/// The tokens that a session gives alone.
fn alone(mut session: Session, options: GenerateOptions) -> Vec<u32> {
    let generation = session.generate(options).expect("options are fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// What each sequence has given, and why it ended.
#[derive(Default)]
struct Seen {
    tokens: Vec<(SequenceId, u32)>,
    ends: Vec<(SequenceId, StopReason)>,
}

impl Seen {
    fn step(&mut self, batch: &mut Batch) {
        for event in batch.step() {
            match event.progress {
                Progress::Token(token) => self.tokens.push((event.sequence, token.id)),
                Progress::Ended { reason, .. } => self.ends.push((event.sequence, reason)),
                Progress::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }

    fn run(&mut self, batch: &mut Batch) {
        while batch.is_running() {
            self.step(batch);
        }
    }

    fn tokens(&self, sequence: SequenceId) -> Vec<u32> {
        let of = self.tokens.iter().filter(|(id, _)| *id == sequence);
        of.map(|(_, token)| *token).collect()
    }

    fn end(&self, sequence: SequenceId) -> Option<StopReason> {
        let of = self.ends.iter().find(|(id, _)| *id == sequence);
        of.map(|(_, reason)| *reason)
    }
}

/// Breaks when a row reads another sequence's cache, position, history or sampling, whatever the
/// attention block of the model looks like. The windows are smaller than the prompts, so that rings wrap.
#[test]
fn every_architecture_gives_the_tokens_of_single_sessions() {
    for (arch, window) in [
        ("llama", None),
        ("gemma", None),
        ("qwen2", None),
        ("qwen3", None),
        ("gemma3", Some(6)),
    ] {
        let model = load(TinyLlama {
            arch,
            window,
            ..TINY
        });
        let settings = [
            (9, options(5, Sampling::greedy())),
            (21, options(8, drawn(3, 1.0))),
            (2, options(7, drawn(4, 1.3))),
        ];
        let mut batch = model.batch(3).expect("memory");
        let ids = settings.clone().map(|(n, options)| {
            let joined = batch.join(fed(&model, 40, n), options);
            joined.expect("there is room")
        });
        let mut seen = Seen::default();
        seen.run(&mut batch);
        for (id, (n, options)) in ids.into_iter().zip(settings) {
            let wanted = alone(fed(&model, 40, n), options);
            assert_eq!(seen.tokens(id), wanted, "{arch}, prompt of {n}");
            assert_eq!(seen.end(id), Some(StopReason::MaxTokens));
        }
    }
}

/// Each number of sequences has products of its own: one row, a few, a small tile, a large one.
#[test]
fn every_number_of_sequences_gives_the_tokens_of_single_sessions() {
    let model = load(TINY);
    let wanted: Vec<Vec<u32>> = (1..=16)
        .map(|n| alone(fed(&model, 24, n), options(3, drawn(n.into(), 1.1))))
        .collect();
    for n_sequences in [1, 2, 4, 5, 8, 9, 16] {
        let mut batch = model.batch(n_sequences).expect("memory");
        let mut ids = Vec::new();
        for n in 1..=n_sequences {
            let joined = batch.join(fed(&model, 24, n), options(3, drawn(n.into(), 1.1)));
            ids.push(joined.expect("there is room"));
        }
        let mut seen = Seen::default();
        seen.run(&mut batch);
        let found: Vec<Vec<u32>> = ids.iter().map(|id| seen.tokens(*id)).collect();
        assert_eq!(found, wanted[..n_sequences as usize], "{n_sequences}");
    }
}

/// The twins sum each row by itself and in one order: the very same numbers.
#[test]
fn logits_are_those_of_a_single_session_bit_for_bit() {
    let model = load(TINY);
    let mut batch = model.batch(3).expect("memory");
    let ids = [5, 12, 8].map(|n| {
        let joined = batch.join(fed(&model, 24, n), options(9, Sampling::greedy()));
        (n, joined.expect("there is room"))
    });
    let mut seen = Seen::default();
    for _ in 1..5 {
        seen.step(&mut batch);
        let all = ids.map(|(_, id)| batch.logits(id).expect("reads"));
        for ((n, id), logits) in ids.into_iter().zip(all) {
            // More than one a step where the text of another session is guessed.
            let n_tokens = seen.tokens(id).len();
            if n_tokens == 1 && n == 8 {
                assert_eq!(
                    logits, None,
                    "its first token was chosen from what was there"
                );
                continue;
            }
            let mut single = fed(&model, 24, n);
            let before = options(n_tokens - 1, Sampling::greedy());
            single.generate(before).expect("greedy").for_each(drop);
            assert_eq!(
                logits,
                Some(single.logits().expect("some")),
                "prompt of {n}"
            );
            assert_eq!(
                batch.logits(id).expect("reads"),
                None,
                "the session stepped since"
            );
        }
    }
}

/// Sequences that join while others run and leave before they end; one goes on alone afterwards.
#[test]
fn sequences_come_and_go() {
    let model = load(TINY);
    let wanted = |n| alone(fed(&model, 40, n), options(10, drawn(n.into(), 1.2)));
    let settings = |n: u32, max_tokens| options(max_tokens, drawn(n.into(), 1.2));
    let mut batch = model.batch(2).expect("memory");
    let mut seen = Seen::default();

    let first = batch.join(fed(&model, 40, 6), settings(6, 10));
    let first = first.expect("there is room");
    seen.step(&mut batch);
    seen.step(&mut batch);
    let second = batch.join(fed(&model, 40, 13), settings(13, 10));
    let second = second.expect("there is room");
    assert!(!batch.has_room());
    seen.step(&mut batch);
    seen.step(&mut batch);
    let mut left = batch.leave(first).expect("it is there");
    assert!(batch.leave(first).is_none() && batch.session(first).is_none());
    let third = batch.join(fed(&model, 40, 3), settings(3, 10));
    let third = third.expect("there is room");
    seen.run(&mut batch);

    assert_eq!(seen.tokens(second), wanted(13));
    assert_eq!(seen.tokens(third), wanted(3));
    let begin = seen.tokens(first);
    assert_eq!(begin.len(), 4);
    assert_eq!(left.tokens(), [prompt(6), begin.clone()].concat());
    let rest = GenerateOptions {
        n_prompt: Some(prompt(6).len()),
        ..settings(6, 6)
    };
    let rest = left.generate(rest).expect("fine");
    let rest: Vec<u32> = rest.map(|token| token.expect("runs").id).collect();
    assert_eq!([begin, rest].concat(), wanted(6));
}

/// Breaks when a sequence that has ended keeps its place: the other would wait, and `is_running` would be true, for ever.
#[test]
fn an_ended_sequence_makes_room_for_one_that_waits() {
    let model = load(TINY);
    let mut batch = model.batch(1).expect("memory");
    let options = options(3, Sampling::greedy());
    let [first, second] = [6, 13].map(|n| {
        let joined = batch.join(fed(&model, 40, n), options.clone());
        joined.expect("one has a place, one waits")
    });
    assert!(!batch.has_room());
    let mut seen = Seen::default();
    for _ in 0..20 {
        seen.step(&mut batch);
    }
    assert!(!batch.is_running() && batch.has_room());
    assert_eq!(seen.tokens(second), alone(fed(&model, 40, 13), options));
    for sequence in [first, second] {
        assert_eq!(seen.end(sequence), Some(StopReason::MaxTokens));
        let session = batch.leave(sequence).expect("it is kept until it leaves");
        assert!(session.tokens().len() > 6);
    }
}

/// Breaks when a sequence that was cancelled while it waited still takes room in the queue.
#[test]
fn a_cancelled_sequence_does_not_fill_the_queue() {
    let model = load(TINY);
    let mut batch = model.batch(1).expect("memory");
    let options = || options(30, Sampling::greedy());
    let (running, waiting) = (options(), options());
    let cancel = waiting.cancel.clone();
    batch.join(fed(&model, 40, 6), running).expect("a place");
    let waiting = batch.join(fed(&model, 40, 7), waiting).expect("it waits");
    cancel.cancel();
    let mut seen = Seen::default();
    seen.step(&mut batch);
    seen.step(&mut batch);
    assert_eq!(seen.end(waiting), Some(StopReason::Cancelled));
    assert_eq!(batch.n_waiting(), 0);
    batch.join(fed(&model, 40, 8), options()).expect("it waits");
}

/// What a device was asked for.
#[derive(Default)]
struct Asked {
    /// Programs that move their rows on.
    chains: HashSet<PlanId>,
    n_chains: usize,
    under_way: usize,
    /// Submissions that were under way at once.
    most_under_way: usize,
}

/// Looks at a device that runs ahead or not.
#[derive(Clone, Default)]
struct Looker {
    asked: Arc<Mutex<Asked>>,
    runs_ahead: bool,
}

impl Looker {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().expect("no test has panicked")
    }
}

impl Hooks for Looker {
    fn runs_ahead(&self) -> Option<bool> {
        Some(self.runs_ahead)
    }

    fn loaded(&mut self, plan: PlanId, program: &Program) {
        if program.advances() {
            self.asked().chains.insert(plan);
        }
    }

    fn ran(&mut self, plan: PlanId, _: Option<&Checked>) -> Result<(), DeviceError> {
        let mut asked = self.asked();
        asked.n_chains += usize::from(asked.chains.contains(&plan));
        asked.under_way += 1;
        asked.most_under_way = asked.most_under_way.max(asked.under_way);
        Ok(())
    }

    fn waited(&mut self) -> Result<(), DeviceError> {
        self.asked().under_way -= 1;
        Ok(())
    }
}

/// A batch of two sequences on a device that is looked at.
fn watched_pair(looker: &Looker) -> (Batch, [SequenceId; 2]) {
    let device = Box::new(Watched::new(TwinDevice::new(), looker.clone()));
    let file = TINY.write();
    let model = Model::load(&file.path, device).expect("a whole model");
    let mut batch = model.batch(3).expect("memory");
    let ids = [6, 13].map(|n| {
        let joined = batch.join(fed(&model, 40, n), options(5, Sampling::greedy()));
        joined.expect("there is room")
    });
    (batch, ids)
}

/// A step without a prompt runs a program that moves its rows on, which a GPU keeps as a graph; one token for each sequence comes
/// of it, so that others can join before the next. Breaks when a batch runs its rows like those of a prompt.
#[test]
fn a_step_without_a_prompt_is_a_round_of_a_chain() {
    let looker = Looker::default();
    let (mut batch, _) = watched_pair(&looker);
    let before = looker.asked().n_chains;
    let mut seen = Seen::default();
    for n_steps in 1..=4 {
        seen.step(&mut batch);
        let n_chains = looker.asked().n_chains - before;
        assert_eq!((n_chains, seen.tokens.len()), (n_steps, 2 * n_steps));
    }
    assert_eq!(looker.asked().most_under_way, 1);
}

/// A device that works on its own has the next step before the tokens of this one are read, and no step that nobody wants: the
/// fifth token is the last.
#[test]
fn the_next_step_begins_before_the_tokens_of_this_one_are_read() {
    let looker = Looker {
        runs_ahead: true,
        ..Looker::default()
    };
    let (mut batch, ids) = watched_pair(&looker);
    let before = looker.asked().n_chains;
    let mut seen = Seen::default();
    for (n_steps, n_begun) in [(1, 2), (2, 3), (3, 4), (4, 5), (5, 5)] {
        seen.step(&mut batch);
        let n_chains = looker.asked().n_chains - before;
        assert_eq!((n_chains, seen.tokens.len()), (n_begun, 2 * n_steps));
    }
    assert_eq!(looker.asked().most_under_way, 2);
    let model = load(TINY);
    for (n, id) in [6, 13].into_iter().zip(ids) {
        let wanted = alone(fed(&model, 40, n), options(5, Sampling::greedy()));
        assert_eq!(seen.tokens(id), wanted);
    }
}

/// Whoever leaves while the next step is under way takes the tokens that were returned; when it joins again, with another rule, what
/// was computed for it before is not its own, and its neighbour loses nothing.
#[test]
fn who_leaves_and_joins_again_gets_no_token_of_the_step_under_way() {
    let looker = Looker {
        runs_ahead: true,
        ..Looker::default()
    };
    let (mut batch, [first, second]) = watched_pair(&looker);
    let mut seen = Seen::default();
    seen.step(&mut batch);
    seen.step(&mut batch);
    let left = batch.leave(second).expect("it was there");
    let returned = seen.tokens(second);
    assert_eq!(left.tokens(), [prompt(13), returned.clone()].concat());
    let again = batch.join(left, options(4, drawn(5, 1.5)));
    let again = again.expect("there is room");
    seen.run(&mut batch);

    let model = load(TINY);
    let mut session = fed(&model, 40, 13);
    session
        .feed(&[prompt(13), returned].concat())
        .expect("fits");
    assert_eq!(
        seen.tokens(again),
        alone(session, options(4, drawn(5, 1.5)))
    );
    let wanted = alone(fed(&model, 40, 6), options(5, Sampling::greedy()));
    assert_eq!(seen.tokens(first), wanted);
}

/// One context of ten positions is full after a prompt of seven and three tokens, one chosen from the
/// last of them included; another makes room by dropping its oldest tokens.
#[test]
fn a_full_context_ends_its_sequence_and_no_other() {
    let model = load(TINY);
    let greedy = |max_tokens| options(max_tokens, Sampling::greedy());
    let shifting = GenerateOptions {
        overflow: Overflow::Shift { keep: 2 },
        ..options(9, drawn(5, 1.5))
    };
    let mut batch = model.batch(3).expect("memory");
    let mut join = |context, n, options| {
        let joined = batch.join(fed(&model, context, n), options);
        joined.expect("there is room")
    };
    let full = join(10, 7, greedy(100));
    let long = join(40, 5, greedy(9));
    let shifted = join(10, 6, shifting.clone());
    let mut seen = Seen::default();
    seen.run(&mut batch);

    assert_eq!(seen.end(full), Some(StopReason::ContextFull));
    assert_eq!(seen.tokens(full).len(), 4);
    assert_eq!(seen.tokens(full), alone(fed(&model, 10, 7), greedy(100)));
    assert_eq!(seen.end(long), Some(StopReason::MaxTokens));
    assert_eq!(seen.tokens(long), alone(fed(&model, 40, 5), greedy(9)));
    assert_eq!(seen.tokens(shifted), alone(fed(&model, 10, 6), shifting));
    assert_eq!(seen.tokens(shifted).len(), 9);
}

/// The model's end token, a stop text, a cancelled request and one for nothing, beside one that goes on.
#[test]
fn each_sequence_ends_by_its_own_rule() {
    let tiny = load(TINY);
    let of_seed = |seed, max_tokens| GenerateOptions {
        max_tokens,
        sampling: drawn(seed, 2.0),
        ..Default::default()
    };
    // An answer whose first two tokens are characters, and which says neither the second nor the fourth before.
    let answers = (1..100).map(|seed| (seed, alone(fed(&tiny, 40, 9), of_seed(seed, 6))));
    let suits = |(_, answer): &(u64, Vec<u32>)| {
        let repeats = |at: usize| answer[..at].contains(&answer[at]);
        let is_character = |token: &u32| tiny.tokenizer().stream().push(*token).is_some();
        !repeats(1) && !repeats(3) && answer[..2].iter().all(is_character)
    };
    let (seed, answer) = answers.into_iter().find(suits).expect("one of a hundred");
    let until_end = |max_tokens| of_seed(seed, max_tokens);
    let end_token = Some(answer[3]);
    let model = load(TinyLlama { end_token, ..TINY });
    let cancelled = until_end(9);
    let settings = [
        until_end(9),
        GenerateOptions {
            stop: vec![text_of(&model, answer[1])],
            ..until_end(9)
        },
        cancelled.clone(),
        until_end(0),
        options(6, drawn(seed, 2.0)),
    ];
    let mut batch = model.batch(5).expect("memory");
    let [ended, stopped, cut, none, going] = settings.map(|options| {
        let joined = batch.join(fed(&model, 40, 9), options);
        joined.expect("there is room")
    });
    let mut seen = Seen::default();
    seen.step(&mut batch);
    cancelled.cancel.cancel();
    seen.run(&mut batch);

    let ends = [ended, stopped, cut, none, going].map(|id| seen.end(id).expect("it ended"));
    assert_eq!(
        ends,
        [
            StopReason::EndToken,
            StopReason::StopText,
            StopReason::Cancelled,
            StopReason::MaxTokens,
            StopReason::MaxTokens
        ]
    );
    assert_eq!(seen.tokens(ended), answer[..3]);
    assert_eq!(seen.tokens(stopped), answer[..2]);
    assert_eq!(seen.tokens(cut), answer[..1]);
    assert!(seen.tokens(none).is_empty());
    assert_eq!(seen.tokens(going), answer);
    let held = |batch: &mut Batch, id| batch.leave(id).map(|session| session.tokens().to_vec());
    assert_eq!(
        held(&mut batch, ended),
        Some([&prompt(9), &answer[..3]].concat())
    );
    assert_eq!(held(&mut batch, none), Some(prompt(9)));
    assert!(batch.step().is_empty());
}

fn text_of(model: &Model, token: u32) -> String {
    let mut stream = model.tokenizer().stream();
    stream.push(token).expect("a token that is a character")
}

#[test]
fn what_cannot_join_is_refused() {
    let (model, other) = (load(TINY), load(TINY));
    let greedy = || options(1, Sampling::greedy());
    for sequences in [0, 257] {
        let error = model.batch(sequences).err().expect("1 to 256").to_string();
        let wanted = format!("a batch of {sequences} sequences is not possible; choose 1 to 256");
        assert_eq!(error, wanted);
    }
    let mut batch = model.batch(1).expect("memory").with_queue(0);
    let mut refuse = |session, options| {
        let refused = batch.join(session, options).expect_err("it cannot join");
        (*refused.error, refused.session.tokens().to_vec())
    };
    let (error, tokens) = refuse(fed(&other, 24, 3), greedy());
    assert!(matches!(error, EngineError::OtherModel { .. }), "{error:?}");
    assert_eq!(tokens, prompt(3), "the session comes back");
    let empty = model.session(SessionOptions::default()).expect("memory");
    let (error, _) = refuse(empty, greedy());
    assert!(matches!(error, EngineError::NothingToContinue), "{error:?}");
    let hot = Sampling {
        temperature: -1.0,
        ..Sampling::greedy()
    };
    let (error, _) = refuse(fed(&model, 24, 3), options(1, hot));
    assert!(matches!(error, EngineError::Sampling { .. }), "{error:?}");

    let joined = batch.join(fed(&model, 24, 3), greedy());
    joined.expect("there is room");
    let refused = batch.join(fed(&model, 24, 3), greedy()).expect_err("full");
    let error = *refused.error;
    assert!(
        matches!(error, EngineError::BatchFull { sequences: 1 }),
        "{error:?}"
    );
}
