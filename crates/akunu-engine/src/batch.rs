//! Several sequences of one model, stepped together.
//!
//! Decoding waits for the weights to come from memory. A batch reads them once for a token of every
//! sequence, so that a step for eight sequences costs little more than one for a single sequence. Prompts are read piece by
//! piece beside them ([`Batch::join_prompt`]), or before ([`Session::feed`] and [`Batch::join`]).
//!
//! Sequences are [`Session`]s. They join with their own sampling and stop conditions, and leave with their content,
//! at any time. At most `sequences` step together; those that come later wait in a queue.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::answer::{Answer, Next};
use crate::error::EngineError;
use crate::images::Prompt;
use crate::machine::{Machine, Outcome, Part};
use crate::model::Model;
use crate::options::{GenerateOptions, StopReason, Token};
use crate::runtime::OutputAt;
use crate::session::{Reading, Session};
use crate::speculation::Speculated;

/// The maximum number of sequences of a batch.
pub const MAX_SEQUENCES: u32 = 256;
/// Maximum number of rows of a step, which limits how long a running sequence waits while a prompt is read.
const DEFAULT_BUDGET: usize = 256;

/// The id of a sequence, which is unique within its batch.
///
/// ```no_run
/// use akunu_engine::GenerateOptions;
/// # fn example(batch: &mut akunu_engine::Batch, session: akunu_engine::Session) -> Result<(), akunu_engine::EngineError> {
/// let sequence = batch.join(session, GenerateOptions::default())?;
/// let n_tokens = batch.session(sequence).map(|session| session.tokens().len());
/// let session = batch.leave(sequence);
/// # drop((n_tokens, session));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(u64);

/// What a step did for one sequence.
///
/// ```no_run
/// # fn example(batch: &mut akunu_engine::Batch) -> Result<(), akunu_engine::EngineError> {
/// while batch.is_running() {
///     for event in batch.step() {
///         println!("{:?}: {:?}", event.sequence, event.progress);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchEvent {
    /// The sequence.
    pub sequence: SequenceId,
    /// What it did.
    pub progress: Progress,
}

/// What happened to a sequence in a step.
///
/// ```no_run
/// use akunu_engine::Progress;
/// # fn example(batch: &mut akunu_engine::Batch) -> Result<(), akunu_engine::EngineError> {
/// for event in batch.step() {
///     match event.progress {
///         Progress::Token(token) => print!("{}", token.text),
///         Progress::Ended { reason, tail } => println!("{tail} ({})", reason.name()),
///         Progress::Failed(error) => return Err(error),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress {
    /// A piece of its prompt was read.
    Read(Reading),
    /// It has another token.
    Token(Token),
    /// It has ended and takes no part in further steps. Its place is free for another sequence; its session stays in the batch
    /// until [`Batch::leave`] returns it.
    Ended {
        /// Why.
        reason: StopReason,
        /// The text that was held back: an incomplete character, or the beginning of a stop text.
        tail: String,
    },
    /// It failed and takes no part in further steps. The others continue.
    Failed(EngineError),
}

/// A session that could not join, unchanged, and why.
///
/// ```no_run
/// use akunu_engine::GenerateOptions;
/// # fn example(batch: &mut akunu_engine::Batch, session: akunu_engine::Session) -> Result<(), akunu_engine::EngineError> {
/// // A session that finds no place is not lost.
/// let session = match batch.join(session, GenerateOptions::default()) {
///     Ok(_) => None,
///     Err(refused) => Some(refused.session),
/// };
/// # drop(session);
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub struct JoinError {
    /// The session as it was.
    pub session: Box<Session>,
    /// Why it was refused.
    pub error: Box<EngineError>,
}

impl std::fmt::Debug for JoinError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "JoinError({:?})", self.error)
    }
}

impl std::fmt::Display for JoinError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for EngineError {
    fn from(refused: JoinError) -> EngineError {
        *refused.error
    }
}

/// A sequence and its answer.
struct Member {
    id: SequenceId,
    session: Session,
    answer: Answer,
    /// The logits of the last step that were its own.
    logits: Option<OutputAt>,
    /// Whether its end was reported.
    is_told: bool,
}

/// Sequences that step together. Made by [`Model::batch`].
///
/// ```no_run
/// use akunu_engine::{GenerateOptions, SessionOptions};
/// # fn example(model: &akunu_engine::Model, prompts: &[Vec<u32>]) -> Result<(), akunu_engine::EngineError> {
/// let mut batch = model.batch(8)?;
/// for prompt in prompts {
///     let session = model.session(SessionOptions::default())?;
///     batch.join_prompt(session, prompt, GenerateOptions::default())?;
/// }
/// while batch.is_running() {
///     for event in batch.step() {
///         println!("{event:?}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Batch {
    model: Model,
    machine: Machine,
    capacity: usize,
    queue_capacity: usize,
    /// In the order in which they joined.
    members: Vec<Member>,
    /// Those that wait for a place.
    waiting: VecDeque<Member>,
    n_joined: u64,
}

impl Model {
    /// Makes a batch of up to `sequences` at once, 1 to [`MAX_SEQUENCES`]. As many again may wait.
    pub fn batch(&self, sequences: u32) -> Result<Batch, EngineError> {
        if !(1..=MAX_SEQUENCES).contains(&sequences) {
            return Err(EngineError::BatchSize {
                found: sequences,
                max: MAX_SEQUENCES,
            });
        }
        let capacity = sequences as usize;
        let budget = DEFAULT_BUDGET.max(2 * capacity);
        self.runtime().want_rows(budget as u32)?;
        Ok(Batch {
            model: self.clone(),
            machine: Machine::new(1, budget),
            capacity,
            queue_capacity: capacity,
            members: Vec::with_capacity(capacity),
            waiting: VecDeque::with_capacity(capacity),
            n_joined: 0,
        })
    }
}

impl Batch {
    /// Sets how many sequences may wait for a place; with 0 a session that finds no place is refused.
    pub fn with_queue(mut self, waiting: usize) -> Batch {
        self.queue_capacity = waiting;
        self
    }

    /// Sets the maximum number of rows of a step, which limits how long a running sequence waits for its next token
    /// while prompts are read.
    pub fn with_budget(mut self, rows: u32) -> Result<Batch, EngineError> {
        let budget = (rows as usize).max(self.capacity + 1);
        self.model.runtime().want_rows(budget as u32)?;
        self.machine.abandon(&self.model);
        self.machine = Machine::new(1, budget);
        Ok(self)
    }

    /// Whether another sequence can step at once. Sequences that have ended take no room.
    pub fn has_room(&self) -> bool {
        let running = self.members.iter().filter(|member| !member.is_told);
        running.count() < self.capacity
    }

    /// Sequences that wait for a place.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a step would do anything: some sequence has not ended. Sequences that wait get a place as soon as another one
    /// ends, so `while batch.is_running()` comes to an end even without a call of [`Batch::leave`].
    pub fn is_running(&self) -> bool {
        let mut all = self.members.iter().chain(&self.waiting);
        all.any(|member| member.answer.is_running())
    }

    /// Adds a session that has read its prompt; it takes part from the next step on, or from the one after that where a device
    /// has already begun the next step.
    pub fn join(
        &mut self,
        session: Session,
        options: GenerateOptions,
    ) -> Result<SequenceId, JoinError> {
        let answer = Answer::new(&session, options);
        self.admit(session, answer)
    }

    /// Adds a session with a prompt, which becomes its whole content, to read and to answer. What it holds already, and what
    /// other sequences have read of the same beginning, is not read again.
    pub fn join_prompt(
        &mut self,
        session: Session,
        prompt: impl Into<Prompt>,
        options: GenerateOptions,
    ) -> Result<SequenceId, JoinError> {
        let answer = Answer::to_prompt(&session, prompt.into(), options);
        self.admit_reader(session, answer)
    }

    /// Admits a sequence with a prompt, and lets it take over what is known of it.
    fn admit_reader(
        &mut self,
        session: Session,
        answer: Result<Answer, EngineError>,
    ) -> Result<SequenceId, JoinError> {
        let id = self.admit(session, answer)?;
        if let Some(member) = self.member_mut(id) {
            let Member {
                session, answer, ..
            } = member;
            session.reuse(&answer.prompt);
        }
        Ok(id)
    }

    fn admit(
        &mut self,
        session: Session,
        answer: Result<Answer, EngineError>,
    ) -> Result<SequenceId, JoinError> {
        let refuse = |session, error| {
            Err(JoinError {
                session: Box::new(session),
                error: Box::new(error),
            })
        };
        if !session.model().is(&self.model) {
            let error = EngineError::OtherModel {
                session: session.model().path().to_path_buf(),
                batch: self.model.path().to_path_buf(),
            };
            return refuse(session, error);
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return refuse(session, error),
        };
        let has_room = self.has_room() && self.waiting.is_empty();
        if !has_room && self.waiting.len() >= self.queue_capacity {
            let error = EngineError::BatchFull {
                sequences: self.capacity as u32,
            };
            return refuse(session, error);
        }
        let id = SequenceId(self.n_joined);
        self.n_joined += 1;
        let member = Member {
            id,
            session,
            answer,
            logits: None,
            is_told: false,
        };
        match has_room {
            true => self.members.push(member),
            false => self.waiting.push_back(member),
        }
        Ok(id)
    }

    fn member_mut(&mut self, id: SequenceId) -> Option<&mut Member> {
        let mut all = self.members.iter_mut().chain(&mut self.waiting);
        all.find(|member| member.id == id)
    }

    /// How many tokens of a sequence were guessed so far, and how many of the guesses were right.
    pub fn speculated(&self, sequence: SequenceId) -> Option<Speculated> {
        let mut all = self.members.iter().chain(&self.waiting);
        all.find(|member| member.id == sequence)
            .map(|member| member.answer.speculated())
    }

    /// Adds a sequence that continues from the state of this one, with its own sampling. The same grammar continues too;
    /// another grammar begins. If all places are taken, it waits like any other sequence.
    pub fn fork(
        &mut self,
        sequence: SequenceId,
        mut options: GenerateOptions,
    ) -> Result<SequenceId, EngineError> {
        let Some(member) = self.member_mut(sequence) else {
            return Err(EngineError::UnknownSequence);
        };
        // What the sequence has written so far is a part of the answer of the fork too.
        options.n_prompt.get_or_insert(member.answer.n_prompt());
        let mut session = member.session.fork();
        session.sequence.tokens.extend(&member.answer.pending);
        let prompt = member.answer.prompt.clone();
        let guide = member.answer.guide_for(&options);
        let joined = match prompt.is_empty() {
            true => self.join(session, options),
            false => {
                let answer = Answer::to_content(&session, prompt, options);
                self.admit_reader(session, answer)
            }
        };
        let id = joined.map_err(EngineError::from)?;
        if let (Some(guide), Some(member)) = (guide, self.member_mut(id)) {
            member.answer.guide = Some(guide);
        }
        Ok(id)
    }

    /// Removes a sequence, also one that runs, reads its prompt or waits. The session holds the tokens that were read and
    /// those that were returned.
    pub fn leave(&mut self, sequence: SequenceId) -> Option<Session> {
        let is_it = |member: &Member| member.id == sequence;
        let mut member = match self.members.iter().position(is_it) {
            Some(at) => self.members.remove(at),
            None => self.waiting.remove(self.waiting.iter().position(is_it)?)?,
        };
        self.machine.dismiss(&member.session);
        member.answer.leave(&mut member.session);
        Some(member.session)
    }

    /// The session of a sequence. Its last token is in it only after the next step.
    pub fn session(&self, sequence: SequenceId) -> Option<&Session> {
        let mut all = self.members.iter().chain(&self.waiting);
        all.find(|member| member.id == sequence)
            .map(|member| &member.session)
    }

    /// Computes one more token of every sequence that has not ended, and reads a piece of a prompt, in one submission. A GPU
    /// begins the next step before this one's tokens are returned, if no prompt is to be read.
    ///
    /// A sequence whose context is full ends, one with an error of its own fails, and the others continue. If the
    /// submission fails, all that took part in it fail with the same reason; their sessions are as before the step.
    pub fn step(&mut self) -> Vec<BatchEvent> {
        self.seat_waiting();
        let running = self
            .members
            .iter_mut()
            .filter(|member| member.answer.is_running());
        let parts = running.map(|member| Part::new(&mut member.session, &mut member.answer));
        let mut parts: Vec<Part> = parts.collect();
        let stepped = self.machine.step(&mut parts);
        let outcomes: Vec<Outcome> = parts.into_iter().map(|part| part.outcome).collect();
        let failure = stepped.err().map(|error| Arc::new(error.to_string()));
        self.tell(outcomes, failure)
    }

    /// The events of a step, from what became of those that were running.
    fn tell(&mut self, outcomes: Vec<Outcome>, failure: Option<Arc<String>>) -> Vec<BatchEvent> {
        let mut events = Vec::with_capacity(self.members.len());
        let mut outcomes = outcomes.into_iter();
        for member in self.members.iter_mut().chain(&mut self.waiting) {
            member.logits = None;
            // Those that had ended before the step, and those that wait, took no part.
            let took_part = !member.is_told;
            let outcome = took_part.then(|| outcomes.next()).flatten();
            let error = match (outcome, &failure) {
                (Some(Outcome::Failed(error)), _) => Some(error),
                (Some(Outcome::None | Outcome::Read), Some(why)) if member.answer.is_running() => {
                    Some(EngineError::Step {
                        why: Arc::clone(why),
                    })
                }
                (Some(Outcome::Read), _) => {
                    events.push(member.event(Progress::Read(member.reading())));
                    None
                }
                (Some(Outcome::Chosen(at)), _) => {
                    member.logits = Some(at);
                    None
                }
                (Some(Outcome::None | Outcome::Began) | None, _) => None,
            };
            if let Some(error) = error {
                member.answer.end(StopReason::Failed);
                member.is_told = true;
                events.push(member.event(Progress::Failed(error)));
            }
            member.hand_out(&self.model, &mut events);
        }
        events
    }

    /// Waiting sequences take the places that have become free. Those that were cancelled while they waited need none.
    fn seat_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (ended, waiting): (VecDeque<Member>, _) = waiting.partition(|member| member.is_told);
        self.waiting = waiting;
        self.members.extend(ended);
        while self.has_room()
            && let Some(member) = self.waiting.pop_front()
        {
            self.members.push(member);
        }
    }

    /// The logits that a sequence's token of the last step was chosen from, after its repetition
    /// penalty; `None` if it took no part, or if another step has begun since: of a session of the model, of another
    /// batch, or the next one of this batch on a device that begins it early. [`GenerateOptions::logprobs`] has none of these limits.
    pub fn logits(&self, sequence: SequenceId) -> Result<Option<Vec<f32>>, EngineError> {
        let mut members = self.members.iter();
        let member = members.find(|member| member.id == sequence);
        match member.and_then(|member| member.logits) {
            Some(at) => self.model.runtime().logits_at(at),
            None => Ok(None),
        }
    }
}

impl Drop for Batch {
    /// Nobody will ask for what is under way.
    fn drop(&mut self) {
        self.machine.abandon(&self.model);
    }
}

impl Member {
    fn event(&self, progress: Progress) -> BatchEvent {
        BatchEvent {
            sequence: self.id,
            progress,
        }
    }

    /// Adds events for all tokens that were chosen, and for the end.
    fn hand_out(&mut self, model: &Model, events: &mut Vec<BatchEvent>) {
        while !self.is_told {
            match self.answer.next(model) {
                Next::Token(token) => events.push(self.event(Progress::Token(token))),
                Next::Nothing => return,
                Next::Ended(reason) => {
                    let tail = self.answer.tail();
                    self.is_told = true;
                    events.push(self.event(Progress::Ended { reason, tail }));
                }
            }
        }
    }

    fn reading(&self) -> Reading {
        Reading {
            done: self.session.tokens().len(),
            total: self.answer.prompt.len(),
        }
    }
}
