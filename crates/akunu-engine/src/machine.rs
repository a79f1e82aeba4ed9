//! The machine that steps sequences: one alone, or many together.
//!
//! ```text
//! step 1   a: next token   b: next token   c: tokens 0..254 of its prompt
//! step 2   a: next token   b: next token   c: tokens 254..300, and its first token is chosen
//! step 3   a: next token   b: next token   c: next token
//! ```
//!
//! A step has a row for the next token of every running sequence, and a piece of one prompt, up to a budget of
//! rows: no sequence waits longer than one such step for its next token. When there is no prompt to read, the step is a round of a
//! *chain*, which moves its rows on itself; when no other sequence can join either, several rounds go in one submission, each
//! reading what the one before has chosen.
//!
//! A device that works on its own gets the next chain before the tokens of this one are returned, and if chains have one round,
//! even before they are read:
//!
//! ```text
//! step 4   chain 5 is started   the tokens of chain 4 are waited for, and returned
//! step 5   chain 6 is started   the tokens of chain 5 are waited for, and returned
//! ```
//!
//! Sequences may come and go meanwhile: who has gone has computed up to two tokens in vain, and who has come waits for as many steps.
//!
//! When the pool has no page left, the youngest sequence pauses: it releases its pages and reads its tokens again when
//! there is room.

mod drafts;
mod part;
mod rows;
mod shortage;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use akunu_program::DeviceError;

use self::drafts::{Took, learn, may_propose, propose};
pub(crate) use self::part::{Outcome, Part};
use self::rows::{Role, how, mixed_step, push_singles};
use self::shortage::{fail_first, pause_youngest, reserve_all};
use crate::error::EngineError;
use crate::model::Model;
use crate::runtime::{ChainId, MAX_CHAIN, OutputAt, Runtime};
use crate::session::Session;

/// A submission should not take longer than this: the caller wants to see text, and the operating
/// system ends GPU work that takes seconds.
const TARGET: Duration = Duration::from_millis(60);

/// A chain under way.
struct Started {
    chain: ChainId,
    n: u32,
    /// The sequence of each of its rows; `None` where it has gone since.
    sequences: Vec<Option<u64>>,
    /// Where the logits of the first row are.
    outputs: OutputAt,
    begin: Instant,
    /// Whether its program was loaded for it.
    has_loaded: bool,
}

/// The state machine that steps sequences.
pub(crate) struct Machine {
    /// Rounds of the next chain.
    chain: u32,
    max_chain: u32,
    /// Rows of a step, at most.
    budget: usize,
    /// Chains under way, the oldest first.
    started: VecDeque<Started>,
    /// When the last chain had ended.
    ended: Instant,
    /// The step whose rows are still in memory, if no other step has run since, and the sequences of these rows.
    our_step: Option<(u64, Vec<u64>)>,
}

impl Machine {
    /// A machine for chains of up to `max_chain` rounds and steps of up to `budget` rows. With chains of one round sequences may come
    /// and go between any two steps.
    pub fn new(max_chain: u32, budget: usize) -> Machine {
        Machine {
            chain: 1,
            max_chain: max_chain.clamp(1, MAX_CHAIN),
            budget,
            started: VecDeque::new(),
            ended: Instant::now(),
            our_step: None,
        }
    }

    /// One step of every part that can continue. An error is one that all parts of the step share.
    pub fn step(&mut self, parts: &mut [Part]) -> Result<(), EngineError> {
        let Some(first) = parts.first() else {
            return Ok(());
        };
        let model = first.session.model().clone();
        while let Some(started) = self.started.pop_front() {
            let mut runtime = model.runtime();
            self.start_behind(&mut runtime, &started, parts);
            if self.finish(&mut runtime, started, parts)? {
                return Ok(());
            }
        }
        for part in parts.iter_mut() {
            part.prepare();
        }
        if parts.iter().any(|part| part.answer.drafter.is_some()) {
            let mut runtime = model.runtime();
            let (costs, exact_rows) = (runtime.costs().clone(), runtime.exact_rows());
            drop(runtime);
            propose(&model, parts, self.budget.min(exact_rows), &costs);
        }
        // Nobody else may step before what was chosen is read: the record of choices is one for all.
        let mut runtime = model.runtime();
        let (roles, n) = self.reserve(&mut runtime, parts)?;
        if roles.iter().all(|role| *role == Role::Idle) {
            return Ok(());
        }
        if !self.can_chain(parts, &roles) {
            self.our_step = None;
            return timed_step(&mut runtime, parts, &roles);
        }
        let started = self.start(&mut runtime, parts, &roles, n)?;
        self.finish(&mut runtime, started, parts).map(|_| ())
    }

    /// A sequence has gone: what is being computed for it is nobody's.
    pub fn dismiss(&mut self, session: &Session) {
        self.our_step = None;
        let rows = self
            .started
            .iter_mut()
            .flat_map(|started| &mut started.sequences);
        for row in rows.filter(|row| **row == Some(session.sequence.id)) {
            *row = None;
        }
    }

    /// Waits for what is under way, if there is something, whose results are no longer needed.
    pub fn abandon(&mut self, model: &Model) {
        if !self.started.is_empty() {
            self.drop_started(&mut model.runtime());
        }
    }

    fn drop_started(&mut self, runtime: &mut Runtime) {
        for started in self.started.drain(..) {
            // An error comes again with the next submission.
            let _ = runtime.finish_chain(started.chain);
        }
    }

    /// Decides what each part does and gets pages for it; the youngest pause where there are none. Returns the rounds
    /// of a chain too.
    fn reserve(
        &self,
        runtime: &mut Runtime,
        parts: &mut [Part],
    ) -> Result<(Vec<Role>, u32), EngineError> {
        loop {
            let roles = self.roles(runtime, parts);
            let n = match self.can_chain(parts, &roles) {
                true => self.rounds(runtime, parts, &roles),
                false => 1,
            };
            match reserve_all(runtime, parts, &roles, n) {
                Ok(()) => return Ok((roles, n)),
                // Guesses are given up before anybody pauses.
                Err(EngineError::PoolFull { .. })
                    if parts.iter().any(|part| part.guess.is_some()) =>
                {
                    parts.iter_mut().for_each(|part| part.guess = None);
                }
                Err(EngineError::PoolFull { positions }) => {
                    if !pause_youngest(runtime, parts, &roles) {
                        let error = EngineError::PoolFull { positions };
                        fail_first(parts, &roles, error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the step is a chain: no prompt is being read, and only the logits decide.
    fn can_chain(&self, parts: &[Part], roles: &[Role]) -> bool {
        let mut active = parts.iter().zip(roles);
        let chains = |(part, role): (&Part, &Role)| match role {
            Role::Idle => true,
            Role::Single => part.guess.is_none() && part.answer.can_chain(),
            Role::Reader(_) => false,
        };
        active.all(chains)
    }

    /// The next token of each sequence that has one, and a piece of one prompt: the one that is being read, or the
    /// first that there are pages for.
    fn roles(&self, runtime: &Runtime, parts: &[Part]) -> Vec<Role> {
        let singles = parts.iter().filter(|part| part.is_single());
        let n_rows: usize = singles.map(|part| part.n_rows()).sum();
        let room = self.budget.saturating_sub(n_rows).max(1);
        let begun = |part: &Part| part.is_reader() && part.session.sequence.cached > 0;
        let fits = |part: &Part| {
            part.is_reader() && (n_rows == 0 || runtime.has_pages(part.answer.prompt.len()))
        };
        let reader = parts.iter().position(begun);
        let reader = reader.or_else(|| parts.iter().position(fits));
        let piece = reader.map_or(0, |at| parts[at].piece(room));
        // An image that has to be read as a whole and does not fit next to the others gets a separate step.
        let is_alone = reader.is_some() && piece == 0;
        let role = |(at, part): (usize, &Part)| match part.is_single() {
            true if is_alone => Role::Idle,
            true => Role::Single,
            false if reader == Some(at) && is_alone => Role::Reader(part.lone_piece()),
            false if reader == Some(at) => Role::Reader(piece),
            false => Role::Idle,
        };
        parts.iter().enumerate().map(role).collect()
    }

    /// Rounds of a chain of these parts.
    fn rounds(&self, runtime: &Runtime, parts: &[Part], roles: &[Role]) -> u32 {
        let singles = parts
            .iter()
            .zip(roles)
            .filter(|(_, role)| **role == Role::Single);
        let most = singles.map(|(part, _)| {
            let room = part.session.context() as usize - part.session.tokens().len();
            let in_place = runtime.rounds_in_place(&part.session.sequence);
            room.min(part.answer.wanted()).min(in_place)
        });
        let most = most.min().unwrap_or(1).max(1);
        (self.chain as usize).min(most) as u32
    }

    /// Starts a chain.
    fn start(
        &mut self,
        runtime: &mut Runtime,
        parts: &mut [Part],
        roles: &[Role],
        n: u32,
    ) -> Result<Started, EngineError> {
        let begin = Instant::now();
        let singles = parts.iter().zip(roles);
        let singles = singles.filter(|(_, role)| **role == Role::Single);
        let sequences: Vec<u64> = singles.map(|(part, _)| part.session.sequence.id).collect();
        // Rows that the device has moved on itself need not be told again.
        let are_there =
            self.are_there(runtime, &sequences) && write_in_place(runtime, parts, roles);
        self.our_step = None;
        if !are_there {
            push_singles(runtime, parts, roles)?;
        }
        let n_programs = runtime.n_programs();
        let chain = runtime.start_chain(how(parts, roles), n)?;
        for (part, role) in parts.iter_mut().zip(roles) {
            if *role == Role::Single {
                runtime.chain_started(&mut part.session.sequence, n as usize);
            }
        }
        self.our_step = Some((runtime.last_step(), sequences.clone()));
        Ok(Started {
            chain,
            n,
            sequences: sequences.into_iter().map(Some).collect(),
            outputs: runtime.output(0),
            begin,
            has_loaded: runtime.n_programs() != n_programs,
        })
    }

    /// Waits for a chain and hands its tokens to their sequences. Returns whether one of them is still there.
    fn finish(
        &mut self,
        runtime: &mut Runtime,
        started: Started,
        parts: &mut [Part],
    ) -> Result<bool, EngineError> {
        let n_rows = started.sequences.len();
        let chosen = match runtime.finish_chain(started.chain) {
            Ok(chosen) => chosen,
            Err(error) => {
                self.our_step = None;
                self.drop_started(runtime);
                return fail(parts, &started.sequences, error);
            }
        };
        let mut has_one = false;
        for (row, (sequence, chosen)) in started.sequences.iter().zip(chosen).enumerate() {
            let Some(part) = part_of(parts, *sequence) else {
                continue;
            };
            has_one = true;
            part.note(chosen.noted);
            part.take(runtime, &chosen.tokens, started.outputs.after(row));
            if let Some(drafter) = &mut part.answer.drafter {
                drafter.plain(chosen.tokens.len());
            }
        }
        let took = started.begin.max(self.ended).elapsed();
        self.ended = Instant::now();
        if !started.has_loaded {
            let seconds = took.as_secs_f64() / f64::from(started.n);
            runtime.costs().record_plain(n_rows, seconds);
        }
        self.adapt(started.n, took);
        if self.started.is_empty() {
            self.start_ahead(runtime, parts);
        }
        Ok(has_one)
    }

    /// Starts the next tokens on a device that can compute them while these are returned.
    fn start_ahead(&mut self, runtime: &mut Runtime, parts: &mut [Part]) {
        if !runtime.runs_ahead() || may_propose(parts, runtime.costs()) {
            return;
        }
        let Some(roles) = roles_ahead(parts) else {
            return;
        };
        let n = self.rounds(runtime, parts, &roles);
        // Where there is no page, and where the device fails, the next step sees to it.
        if reserve_all(runtime, parts, &roles, n).is_ok() {
            let started = self.start(runtime, parts, &roles, n);
            self.started.extend(started);
        }
    }

    /// Starts another round behind a chain of one round whose tokens are not known yet, so that the device does not wait while they
    /// are read. All parts must be those of the chain, and go on whatever it chooses.
    fn start_behind(&mut self, runtime: &mut Runtime, started: &Started, parts: &mut [Part]) {
        let is_wanted = self.max_chain == 1 && self.started.is_empty() && runtime.runs_ahead();
        let sequences: Vec<u64> = parts.iter().map(|part| part.session.sequence.id).collect();
        if !is_wanted || !self.are_there(runtime, &sequences) {
            return;
        }
        let goes_on = |part: &Part| part.goes_on_after(started.n as usize);
        if !parts.iter().all(goes_on) || may_propose(parts, runtime.costs()) {
            return;
        }
        let roles = vec![Role::Single; parts.len()];
        // A row that must go on from a block other than the one it has written can only be pushed when its tokens are known.
        if !write_in_place(runtime, parts, &roles) {
            return;
        }
        let has_pages = reserve_all(runtime, parts, &roles, started.n + 1).is_ok();
        // A pool that has grown has made the tables anew.
        if has_pages && self.are_there(runtime, &sequences) {
            let behind = self.start(runtime, parts, &roles, 1);
            self.started.extend(behind);
        }
    }

    /// Whether the rows of the last step are still those of these sequences.
    fn are_there(&self, runtime: &Runtime, sequences: &[u64]) -> bool {
        let ours = self.our_step.as_ref();
        ours.is_some_and(|(step, rows)| *step == runtime.last_step() && rows == sequences)
    }

    /// Longer chains while they stay under the target time.
    fn adapt(&mut self, n: u32, took: Duration) {
        let fits = (TARGET.as_secs_f64() / (took.as_secs_f64() / f64::from(n)).max(1e-6)) as u32;
        self.chain = (2 * n).min(fits).clamp(1, self.max_chain);
    }
}

/// Whether all that take part may overwrite the states that they go on from, as the device's rows do.
fn write_in_place(runtime: &Runtime, parts: &[Part], roles: &[Role]) -> bool {
    let mut parts = parts.iter().zip(roles);
    parts.all(|(part, role)| {
        *role != Role::Single || runtime.writes_in_place(&part.session.sequence)
    })
}

/// The part of a sequence, if it is there.
fn part_of<'a, 'p>(parts: &'a mut [Part<'p>], sequence: Option<u64>) -> Option<&'a mut Part<'p>> {
    let is_it = |part: &&mut Part| Some(part.session.sequence.id) == sequence;
    parts.iter_mut().find(is_it)
}

/// What follows from the failure of a chain of these sequences: where other parts are there, it is none of theirs. Returns whether
/// one of the sequences is still there.
fn fail(
    parts: &mut [Part],
    sequences: &[Option<u64>],
    error: EngineError,
) -> Result<bool, EngineError> {
    let is_in_chain = |part: &Part| sequences.contains(&Some(part.session.sequence.id));
    if parts.iter().all(is_in_chain) {
        return Err(error);
    }
    let why = Arc::new(error.to_string());
    let mut has_one = false;
    for part in parts.iter_mut().filter(|part| is_in_chain(part)) {
        let why = Arc::clone(&why);
        part.outcome = Outcome::Failed(EngineError::Step { why });
        has_one = true;
    }
    Ok(has_one)
}

/// What the parts do in a chain that starts before its tokens are asked for: all go on that do not end with what was chosen.
/// `None` if nobody goes on, or if somebody has to do something else first.
fn roles_ahead(parts: &[Part]) -> Option<Vec<Role>> {
    let role = |part: &Part| {
        let answer = &part.answer;
        let ends = !part.is_running() || answer.wanted() == 0;
        if ends || answer.has_end(part.session.model()) {
            return Some(Role::Idle);
        }
        part.can_chain_after(0).then_some(Role::Single)
    };
    let roles: Vec<Role> = parts.iter().map(role).collect::<Option<_>>()?;
    roles.contains(&Role::Single).then_some(roles)
}

/// A step of one round, and what it says about guesses.
fn timed_step(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
) -> Result<(), EngineError> {
    let (begin, n_programs) = (Instant::now(), runtime.n_programs());
    match mixed_step(runtime, parts, roles) {
        // The one part that took part was cancelled, and ends when it is asked for its next token.
        Err(EngineError::Device(DeviceError::Stopped)) => return Ok(()),
        ran => ran?,
    }
    let took = Took {
        seconds: begin.elapsed().as_secs_f64(),
        has_loaded: runtime.n_programs() != n_programs,
    };
    learn(runtime, parts, roles, &took);
    Ok(())
}
