//! Answers that are cancelled while their guesses are checked, or while a draft model makes them.

use std::sync::{Arc, Mutex, MutexGuard};

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{
    CancelFlag, DraftModel, GenerateOptions, Lookup, Model, Progress, Sampling, Session,
    SessionOptions, Speculation, StopReason,
};
use akunu_program::{Checked, DeviceError, PlanId};

use super::talk::drawn;
use crate::support::watched::{Hooks, Watched};
use crate::support::{TINY, tiny_llama};

/// What a test wants to happen after a step, before anybody sees what it has chosen.
#[derive(Clone, Default)]
struct Trap(Arc<Mutex<Armed>>);

#[derive(Default)]
struct Armed {
    /// Set after a step of at least as many rows, or of so long a piece of a prompt.
    flag: Option<CancelFlag>,
    rows: u32,
    /// Such steps that go by before.
    spared: usize,
    /// Steps of any kind since it was set.
    n_after: usize,
}

impl Trap {
    fn arm(&self, flag: &CancelFlag, rows: u32, spared: usize) {
        let flag = Some(flag.clone());
        *self.armed() = Armed {
            flag,
            rows,
            spared,
            n_after: 0,
        };
    }

    fn has_sprung(&self) -> bool {
        self.armed().flag.is_none()
    }

    fn armed(&self) -> MutexGuard<'_, Armed> {
        self.0.lock().expect("no test has panicked with it")
    }
}

impl Hooks for Trap {
    fn ran(&mut self, _: PlanId, step: Option<&Checked>) -> Result<(), DeviceError> {
        let mut armed = self.armed();
        armed.n_after += usize::from(armed.flag.is_none());
        if step.is_some_and(|step| step.counts().rows() >= armed.rows) {
            match armed.spared.checked_sub(1) {
                Some(left) => armed.spared = left,
                None => {
                    if let Some(flag) = armed.flag.take() {
                        flag.cancel();
                    }
                }
            }
        }
        Ok(())
    }
}

/// A small random model whose steps are watched.
fn load() -> (Model, Trap) {
    let options = CpuOptions {
        threads: Some(1),
        ..Default::default()
    };
    let trap = Trap::default();
    let device = CpuDevice::new(options).expect("a CPU");
    let device = Box::new(Watched::new(device, trap.clone()));
    let model = Model::load(&tiny_llama(TINY.dtype).path, device).expect("a whole model");
    (model, trap)
}

fn prompt(salt: u32) -> Vec<u32> {
    (0..70).map(|i| (i * 29 + salt * 53) % 256).collect()
}

fn session(model: &Model) -> Session {
    let options = SessionOptions {
        context: Some(200),
        chunk: 32,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn options(sampling: Sampling, lookup: Lookup) -> GenerateOptions {
    GenerateOptions {
        max_tokens: 24,
        sampling,
        ignore_end: true,
        speculation: Speculation {
            lookup,
            ..Speculation::default()
        },
        ..GenerateOptions::default()
    }
}

/// All tokens of an answer by itself.
fn say(model: &Model, prompt: &[u32], options: GenerateOptions) -> Vec<u32> {
    let mut session = session(model);
    session.feed(prompt).expect("fits");
    let generation = session.generate(options).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// Lets a model say answers that it will guess from next time: the right one, and before it one that goes on otherwise
/// after some tokens, so that guesses branch there. Returns the right one.
fn prepare(model: &Model, prompt: &[u32], sampling: Sampling) -> Vec<u32> {
    let plain = say(model, prompt, options(sampling, Lookup::Off));
    say(model, prompt, options(sampling, Lookup::On));
    let others: Vec<u32> = plain[6..9].iter().map(|id| (id + 1) % 256).collect();
    let text = [&prompt[60..], &plain[..6], &others].concat();
    let mut one = options(sampling, Lookup::On);
    one.max_tokens = 1;
    say(model, &text, one);
    plain
}

/// The pages that a session with these tokens has.
fn pages_of(tokens: &[u32]) -> u32 {
    let (model, _) = load();
    let mut session = session(&model);
    session.feed(tokens).expect("fits");
    model.pages_in_use()
}

/// Fails when a token is handed out that was still being checked when the answer was cancelled, when what was computed for
/// it stays in the session or keeps a page, or when the session does not go on as if nothing had been guessed.
#[test]
fn nothing_comes_after_a_cancel_while_guesses_are_checked() {
    for sampling in [Sampling::greedy(), drawn(5, 1.0), drawn(6, 1.3)] {
        let (model, trap) = load();
        let prompt = prompt(1);
        let plain = prepare(&model, &prompt, sampling);
        for spared in 0..3 {
            let mut session = session(&model);
            session.feed(&prompt).expect("fits");
            let of = options(sampling, Lookup::On);
            trap.arm(&of.cancel, 3, spared);
            let mut generation = session.generate(of).expect("fine");
            let mut said = Vec::new();
            for token in generation.by_ref() {
                assert!(!trap.has_sprung(), "a token after the cancel");
                said.push(token.expect("runs").id);
            }
            assert!(trap.has_sprung(), "no step had guesses");
            assert_eq!(generation.stop(), Some(StopReason::Cancelled));
            let accepted = generation.speculated().n_accepted() as usize;
            drop(generation);
            assert!(said.len() < plain.len() && accepted > 1, "{accepted}");
            assert_eq!(said, plain[..said.len()]);
            assert_eq!(session.tokens(), [&prompt[..], &said].concat());
            assert_eq!(model.pages_in_use(), pages_of(session.tokens()));
            let mut rest = options(sampling, Lookup::On);
            rest.max_tokens -= said.len();
            rest.n_prompt = Some(prompt.len());
            let rest = session.generate(rest).expect("fine");
            let rest: Vec<u32> = rest.map(|token| token.expect("runs").id).collect();
            assert_eq!(rest, plain[said.len()..]);
            drop(session);
            assert_eq!(model.pages_in_use(), 0);
        }
    }
}

/// The same for tokens that were accepted and wait to be handed out.
#[test]
fn accepted_tokens_that_wait_are_dropped_by_a_cancel() {
    let (model, _) = load();
    let (prompt, sampling) = (prompt(2), drawn(7, 1.0));
    let plain = prepare(&model, &prompt, sampling);
    let mut n_waiting = 0;
    for n in 1..12 {
        let mut session = session(&model);
        session.feed(&prompt).expect("fits");
        let of = options(sampling, Lookup::On);
        let cancel = of.cancel.clone();
        let mut generation = session.generate(of).expect("fine");
        let said: Vec<u32> = (generation.by_ref().take(n))
            .map(|token| token.expect("runs").id)
            .collect();
        cancel.cancel();
        assert!(generation.next().is_none(), "a token after the cancel");
        assert_eq!(generation.stop(), Some(StopReason::Cancelled));
        let speculated = generation.speculated();
        // Each step gives its right guesses and one more token; the prompt gives the first.
        let computed = 1 + speculated.steps + speculated.n_accepted();
        n_waiting += u32::from(computed as usize > n);
        drop(generation);
        assert_eq!(said, plain[..n]);
        assert_eq!(session.tokens(), [&prompt[..], &said].concat());
        assert_eq!(model.pages_in_use(), pages_of(session.tokens()));
    }
    assert!(n_waiting > 3, "{n_waiting} cancels found tokens that wait");
}

/// Fails when the cancel of one sequence changes another one's tokens, when a token of the cancelled one comes out of the
/// step that was under way, or when its pages stay.
#[test]
fn neighbours_go_on_when_one_is_cancelled_while_its_guesses_are_checked() {
    let ways = [Sampling::greedy(), drawn(8, 1.0), drawn(9, 1.2)];
    for spared in [0, 1, 2] {
        let (model, trap) = load();
        let prompts: Vec<Vec<u32>> = (3..6).map(prompt).collect();
        let asked = || prompts.iter().zip(ways);
        let plain: Vec<Vec<u32>> = asked()
            .map(|(prompt, sampling)| prepare(&model, prompt, sampling))
            .collect();
        let mut batch = model.batch(3).expect("memory");
        let of: Vec<GenerateOptions> = ways.map(|way| options(way, Lookup::On)).to_vec();
        let ids: Vec<_> = (prompts.iter().zip(&of))
            .map(|(prompt, of)| {
                let joined = batch.join_prompt(session(&model), prompt, of.clone());
                joined.expect("there is room")
            })
            .collect();
        let mut said = vec![Vec::new(); 3];
        let mut ends = [None; 3];
        let mut is_armed = false;
        while batch.is_running() {
            if !is_armed && said.iter().all(|said| !said.is_empty()) {
                trap.arm(&of[1].cancel, 5, spared);
                is_armed = true;
            }
            for event in batch.step() {
                let at = ids.iter().position(|id| *id == event.sequence);
                let at = at.expect("one of ours");
                match event.progress {
                    Progress::Token(token) => {
                        let is_late = at == 1 && is_armed && trap.has_sprung();
                        assert!(!is_late, "a token after the cancel");
                        said[at].push(token.id);
                    }
                    Progress::Ended { reason, .. } => ends[at] = Some(reason),
                    Progress::Failed(error) => panic!("{error}"),
                    _ => {}
                }
            }
        }
        assert!(trap.has_sprung(), "no step had guesses");
        assert_eq!(ends[1], Some(StopReason::Cancelled));
        assert!(said[1].len() < plain[1].len());
        assert_eq!(said[1], plain[1][..said[1].len()]);
        assert_eq!([&said[0], &said[2]], [&plain[0], &plain[2]]);
        let sessions = ids.iter().map(|id| batch.leave(*id).expect("there"));
        let mut sessions: Vec<Session> = sessions.collect();
        let cancelled = sessions.remove(1);
        assert_eq!(cancelled.tokens(), [&prompts[1][..], &said[1]].concat());
        drop(sessions);
        assert_eq!(model.pages_in_use(), pages_of(cancelled.tokens()));
        drop(cancelled);
        assert_eq!(model.pages_in_use(), 0);
    }
}

/// Fails when a cancel has to wait until a draft model has read a whole prompt, or when it becomes an error, or when the
/// draft keeps pages.
#[test]
fn a_cancel_ends_what_a_draft_model_does() {
    let (model, _) = load();
    let prompt = prompt(6);
    let plain = say(&model, &prompt, options(Sampling::greedy(), Lookup::Off));
    // While it reads the prompt, after the first of three pieces; and while it guesses.
    for rows in [32, 1] {
        let (draft, trap) = load();
        let mut of = options(Sampling::greedy(), Lookup::Off);
        of.speculation.draft = Some(DraftModel::new(&model, &draft).expect("the same tokens"));
        of.speculation.draft_tokens = Some(4);
        let spared = if rows == 1 { 8 } else { 0 };
        trap.arm(&of.cancel, rows, spared);
        let mut session = session(&model);
        session.feed(&prompt).expect("fits");
        let mut generation = session.generate(of).expect("fine");
        let said = generation.by_ref().map(|token| token.expect("runs").id);
        let said: Vec<u32> = said.collect();
        assert_eq!(generation.stop(), Some(StopReason::Cancelled));
        drop(generation);
        assert!(trap.has_sprung() && said.len() < plain.len());
        assert_eq!(trap.armed().n_after, 0, "the draft went on");
        assert_eq!(said, plain[..said.len()]);
        assert_eq!(session.tokens(), [&prompt[..], &said].concat());
        assert_eq!(draft.pages_in_use(), 0);
    }
}
