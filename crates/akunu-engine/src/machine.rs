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
//! When the pool has no page left, the youngest sequence pauses: it releases its pages and reads its tokens again when
//! there is room.

mod drafts;
mod part;
mod rows;
mod shortage;

use std::time::{Duration, Instant};

use self::drafts::{Took, learn, may_propose, propose};
pub(crate) use self::part::{Outcome, Part};
use self::rows::{Role, how, mixed_step, push_singles};
use self::shortage::{fail_first, pause_youngest, reserve_all};
use crate::error::EngineError;
use crate::runtime::{ChainId, MAX_CHAIN, Runtime};
use crate::session::Session;

/// A submission should not take longer than this: the caller wants to see text, and the operating
/// system ends GPU work that takes seconds.
const TARGET: Duration = Duration::from_millis(60);

/// A chain under way.
struct Started {
    chain: ChainId,
    n: u32,
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
    started: Option<Started>,
    /// The step whose rows are still in memory, if no other step has run since.
    our_step: Option<u64>,
}

impl Machine {
    /// A machine for chains of up to `max_chain` rounds and steps of up to `budget` rows. With chains of one round sequences may come
    /// and go between any two steps.
    pub fn new(max_chain: u32, budget: usize) -> Machine {
        Machine {
            chain: 1,
            max_chain: max_chain.clamp(1, MAX_CHAIN),
            budget,
            started: None,
            our_step: None,
        }
    }

    /// One step of every part that can continue. An error is one that all parts of the step share.
    pub fn step(&mut self, parts: &mut [Part]) -> Result<(), EngineError> {
        let Some(first) = parts.first() else {
            return Ok(());
        };
        let model = first.session.model().clone();
        if let Some(started) = self.started.take() {
            return self.finish(&mut model.runtime(), started, parts);
        }
        for part in parts.iter_mut() {
            part.prepare();
        }
        if parts.iter().any(|part| part.answer.drafter.is_some()) {
            let mut runtime = model.runtime();
            let (costs, exact_rows) = (runtime.costs().clone(), runtime.exact_rows());
            drop(runtime);
            propose(parts, self.budget.min(exact_rows), &costs);
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
        self.finish(&mut runtime, started, parts)
    }

    /// Waits for the submission under way, if there is one, whose results are no longer needed.
    pub fn abandon(&mut self, session: &Session) {
        if let Some(started) = self.started.take() {
            // An error comes again with the next submission.
            let _ = session.model().runtime().finish_chain(started.chain);
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
                true => self.rounds(parts, &roles),
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

    /// Whether the sequences of the next step are those of this one.
    fn keeps_its_sequences(&self) -> bool {
        self.max_chain > 1
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
        let role = |(at, part): (usize, &Part)| match part.is_single() {
            true => Role::Single,
            false if reader == Some(at) => {
                Role::Reader(part.unread().min(room).min(part.session.chunk()))
            }
            false => Role::Idle,
        };
        parts.iter().enumerate().map(role).collect()
    }

    /// Rounds of a chain of these parts.
    fn rounds(&self, parts: &[Part], roles: &[Role]) -> u32 {
        let singles = parts
            .iter()
            .zip(roles)
            .filter(|(_, role)| **role == Role::Single);
        let most = singles.map(|(part, _)| {
            let room = part.session.context() as usize - part.session.tokens().len();
            room.min(part.answer.wanted())
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
        // Rows that the device has moved on itself need not be told again.
        if self.our_step != Some(runtime.last_step()) {
            push_singles(runtime, parts, roles)?;
        }
        let n_programs = runtime.n_programs();
        let chain = runtime.start_chain(how(parts, roles), n);
        let are_kept = self.keeps_its_sequences() && chain.is_ok();
        self.our_step = are_kept.then(|| runtime.last_step());
        Ok(Started {
            chain: chain?,
            n,
            begin,
            has_loaded: runtime.n_programs() != n_programs,
        })
    }

    /// Waits for a chain and hands its tokens to their sequences.
    fn finish(
        &mut self,
        runtime: &mut Runtime,
        started: Started,
        parts: &mut [Part],
    ) -> Result<(), EngineError> {
        let Started {
            chain,
            n,
            begin,
            has_loaded,
        } = started;
        let chosen = runtime.finish_chain(chain);
        let chosen = chosen.inspect_err(|_| self.our_step = None)?;
        let singles = parts.iter_mut().filter(|part| part.is_single());
        let n_singles = chosen.len();
        for ((row, part), chosen) in singles.enumerate().zip(chosen) {
            part.note(chosen.noted);
            let at = runtime.output(row);
            part.take(runtime, &chosen.tokens, at);
            if let Some(drafter) = &mut part.answer.drafter {
                drafter.plain(chosen.tokens.len());
            }
        }
        let took = begin.elapsed();
        if !has_loaded {
            let seconds = took.as_secs_f64() / f64::from(n);
            runtime.costs().record_plain(n_singles, seconds);
        }
        self.adapt(n, took);
        self.start_ahead(runtime, parts)
    }

    /// Starts the next tokens on a device that can compute them while these are returned.
    fn start_ahead(
        &mut self,
        runtime: &mut Runtime,
        parts: &mut [Part],
    ) -> Result<(), EngineError> {
        let goes_on = |part: &Part| {
            let room = part.session.context() as usize > part.session.tokens().len();
            let can_go = part.answer.can_chain() && part.answer.wanted() > 0;
            room && can_go && !part.answer.has_end(part.session.model())
        };
        let runs_ahead = self.keeps_its_sequences() && runtime.runs_ahead();
        if !runs_ahead || !parts.iter().all(goes_on) {
            return Ok(());
        }
        if may_propose(parts, runtime.costs()) {
            return Ok(());
        }
        for part in parts.iter_mut() {
            part.outcome = Outcome::None;
        }
        let roles = self.roles(runtime, parts);
        let n = self.rounds(parts, &roles);
        // Where there is no page, the next step sees to it.
        if reserve_all(runtime, parts, &roles, n).is_ok() {
            self.started = Some(self.start(runtime, parts, &roles, n)?);
        }
        Ok(())
    }

    /// Longer chains while they stay under the target time.
    fn adapt(&mut self, n: u32, took: Duration) {
        let fits = (TARGET.as_secs_f64() / (took.as_secs_f64() / f64::from(n)).max(1e-6)) as u32;
        self.chain = (2 * n).min(fits).clamp(1, self.max_chain);
    }
}

/// A step of one round, and what it says about guesses.
fn timed_step(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
) -> Result<(), EngineError> {
    let (begin, n_programs) = (Instant::now(), runtime.n_programs());
    mixed_step(runtime, parts, roles)?;
    let took = Took {
        seconds: begin.elapsed().as_secs_f64(),
        has_loaded: runtime.n_programs() != n_programs,
    };
    learn(runtime, parts, roles, &took);
    Ok(())
}
