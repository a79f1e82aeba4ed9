//! Several sequences of one model, stepped together.
//!
//! Decoding waits for the weights to come from memory. A batch reads them once for a token of every
//! sequence, so that a step for eight people costs little more than one for a single person:
//!
//! ```text
//! sequence   prompt      step 1   step 2   step 3
//! a          fed alone     a1       a2     (ended)
//! b          fed alone     b1       b2       b3
//! c                    (joins)      c1       c2
//! ```
//!
//! Sequences are [`Session`]s. They are fed as always, join with their own sampling and stop conditions,
//! and leave with their cache and tokens, whenever they like.

mod lineup;
mod seat;

use self::lineup::Lineup;
use self::seat::Seat;
use crate::error::EngineError;
use crate::generation::{GenerateOptions, StopReason, Token};
use crate::memory::SharedRows;
use crate::model::Model;
use crate::session::Session;

/// Most sequences of a batch.
pub const MAX_SEQUENCES: u32 = 16;

/// A sequence of a batch. No two sequences of one batch ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(u64);

/// What a step did for one sequence.
#[derive(Debug)]
pub struct BatchEvent {
    /// The sequence.
    pub sequence: SequenceId,
    /// What it did.
    pub progress: Progress,
}

/// How far a sequence came.
#[derive(Debug)]
pub enum Progress {
    /// It has another token.
    Token(Token),
    /// It has ended and takes no part in further steps, but keeps its place until it leaves.
    Ended {
        /// Why.
        reason: StopReason,
        /// The text that was held back: an incomplete character, or the beginning of a stop text.
        tail: String,
    },
    /// It failed by itself and takes no part in further steps. The others go on.
    Failed(EngineError),
}

/// Sequences that step together. Made by [`Model::batch`].
pub struct Batch<'m> {
    model: &'m Model,
    rows: SharedRows,
    capacity: u32,
    seats: Vec<Seat<'m>>,
    lineup: Option<Lineup>,
    n_joined: u64,
    /// What happened and was not told yet: a step that fails tells nothing.
    events: Vec<BatchEvent>,
}

impl Model {
    /// A batch with room for `sequences`, 1 to [`MAX_SEQUENCES`].
    pub fn batch(&self, sequences: u32) -> Result<Batch<'_>, EngineError> {
        if !(1..=MAX_SEQUENCES).contains(&sequences) {
            return Err(EngineError::BatchSize {
                found: sequences,
                max: MAX_SEQUENCES,
            });
        }
        let rows = SharedRows::allocate(self.config(), sequences, self.device().as_mut())?;
        Ok(Batch {
            model: self,
            rows,
            capacity: sequences,
            seats: Vec::new(),
            lineup: None,
            n_joined: 0,
            events: Vec::new(),
        })
    }
}

impl<'m> Batch<'m> {
    /// Whether another sequence can join.
    pub fn has_room(&self) -> bool {
        self.seats.len() < self.capacity as usize
    }

    /// Whether a step would do anything: some sequence has not ended.
    pub fn is_running(&self) -> bool {
        self.seats.iter().any(Seat::is_running)
    }

    /// Lets a session take part from the next step on. It must have been fed. One that is refused is
    /// lost: ask [`Batch::has_room`] before.
    pub fn join(
        &mut self,
        session: Session<'m>,
        options: GenerateOptions,
    ) -> Result<SequenceId, EngineError> {
        if !std::ptr::eq(session.model(), self.model) {
            return Err(EngineError::OtherModel {
                session: session.model().path().to_path_buf(),
                batch: self.model.path().to_path_buf(),
            });
        }
        if !self.has_room() {
            return Err(EngineError::BatchFull {
                sequences: self.capacity,
            });
        }
        let id = SequenceId(self.n_joined);
        self.seats.push(Seat::new(id, session, options)?);
        self.n_joined += 1;
        Ok(id)
    }

    /// Takes a sequence out, ended or not. The session holds the tokens that were handed out.
    pub fn leave(&mut self, sequence: SequenceId) -> Option<Session<'m>> {
        let at = self.seats.iter().position(|seat| seat.id == sequence)?;
        Some(self.seats.remove(at).into_session())
    }

    /// The session of a sequence. Its last token is in it only after the next step.
    pub fn session(&self, sequence: SequenceId) -> Option<&Session<'m>> {
        let mut seats = self.seats.iter();
        seats
            .find(|seat| seat.id == sequence)
            .map(|seat| &seat.session)
    }

    /// One more token of every sequence that has not ended, in one submission. A sequence that has just
    /// joined gets its first token, which follows from its prompt alone, by itself.
    ///
    /// A sequence whose context is full ends, one that cannot go on by itself fails, and the others go
    /// on. An error is one of the submission that all share. No event is lost by it: those of this step
    /// come with the next one, which tries again.
    pub fn step(&mut self) -> Result<Vec<BatchEvent>, EngineError> {
        let mut newcomers = Vec::new();
        for seat in self.seats.iter_mut().filter(|seat| seat.is_running()) {
            if seat.last.is_none() {
                newcomers.push(seat.id);
            }
            seat.prepare(&mut self.events);
        }
        let chosen = self.step_together()?;
        for seat in &mut self.seats {
            if let Some((_, token)) = chosen.iter().find(|(id, _)| *id == seat.id) {
                seat.take(*token, &mut self.events);
            } else if seat.is_running() && newcomers.contains(&seat.id) {
                seat.take_first(&mut self.events);
            }
        }
        Ok(std::mem::take(&mut self.events))
    }

    /// The logits that a sequence's token of the last step was chosen from, after its repetition
    /// penalty; `None` if it took no part, or had only just joined.
    pub fn logits(&self, sequence: SequenceId) -> Result<Option<Vec<f32>>, EngineError> {
        let row = |lineup: &Lineup| lineup.ids().position(|id| id == sequence);
        let Some(row) = self.lineup.as_ref().and_then(row) else {
            return Ok(None);
        };
        let mut logits = vec![0f32; self.model.config().vocab_size as usize];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut logits);
        let offset = row * bytes.len();
        self.model.device().read(self.rows.logits, offset, bytes)?;
        Ok(Some(logits))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut device = self.model.device();
        for &buffer in &self.rows.all {
            device.release(buffer);
        }
    }
}
