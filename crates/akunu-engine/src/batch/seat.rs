//! One sequence of a batch: what it may still do, and when it ends.

use std::sync::Arc;

use super::{BatchEvent, Progress, SequenceId};
use crate::error::EngineError;
use crate::generation::{GenerateOptions, StopReason, Token};
use crate::sampling::Sampling;
use crate::session::{DecodePlans, Session};
use crate::text::AnswerText;

pub(super) struct Seat<'m> {
    pub id: SequenceId,
    pub session: Session<'m>,
    /// The token chosen last: its keys and values are not in the cache yet.
    pub last: Option<u32>,
    plans: Arc<DecodePlans>,
    options: GenerateOptions,
    text: AnswerText<'m>,
    n_handed_out: usize,
    stop: Option<StopReason>,
}

impl<'m> Seat<'m> {
    pub fn new(
        id: SequenceId,
        mut session: Session<'m>,
        options: GenerateOptions,
    ) -> Result<Seat<'m>, EngineError> {
        let plans = session.ready_to_generate(&options)?;
        Ok(Seat {
            id,
            text: AnswerText::new(session.model().tokenizer(), &options.stop),
            session,
            last: None,
            plans,
            options,
            n_handed_out: 0,
            stop: None,
        })
    }

    pub fn is_running(&self) -> bool {
        self.stop.is_none()
    }

    /// Whether the next step runs a token of it: it has not just joined.
    pub fn is_going(&self) -> bool {
        self.is_running() && self.last.is_some()
    }

    /// Where the token that was chosen last will stand.
    pub fn position(&self) -> u32 {
        self.session.tokens().len() as u32
    }

    pub fn sampling(&self) -> Sampling {
        self.options.sampling
    }

    /// Makes room for a step, or ends the sequence.
    pub fn prepare(&mut self, events: &mut Vec<BatchEvent>) {
        if self.options.cancel.is_set() {
            self.end(StopReason::Cancelled, events);
        } else if self.n_handed_out >= self.options.max_tokens {
            self.end(StopReason::MaxTokens, events);
        } else if let Some(last) = self.last {
            match self.session.make_room(self.options.overflow, last) {
                Ok(0) => self.end(StopReason::ContextFull, events),
                Ok(_) => {}
                Err(error) => self.fail(error, events),
            }
        }
    }

    /// Hands out the token that follows from the prompt.
    pub fn take_first(&mut self, events: &mut Vec<BatchEvent>) {
        match self.session.choose(&self.plans) {
            Ok(token) => self.take(token, events),
            Err(error) => self.fail(error, events),
        }
    }

    /// A step has run the token that was chosen last: the cache has it.
    pub fn store_last(&mut self) {
        if self.is_going()
            && let Some(last) = self.last
        {
            self.session.stored(last);
        }
    }

    /// Hands a token out, or ends the sequence at it.
    pub fn take(&mut self, token: u32, events: &mut Vec<BatchEvent>) {
        self.last = Some(token);
        if self.options.ends_with(self.session.model(), token) {
            return self.end(StopReason::EndToken, events);
        }
        self.n_handed_out += 1;
        let text = self.text.push(token);
        self.tell(Progress::Token(Token { id: token, text }), events);
        if self.text.is_stopped() {
            self.end(StopReason::StopText, events);
        } else if self.n_handed_out >= self.options.max_tokens {
            self.end(StopReason::MaxTokens, events);
        }
    }

    /// The session with the tokens that were handed out, and nothing after them.
    pub fn into_session(mut self) -> Session<'m> {
        if let Some(last) = self.last {
            let unused = usize::from(self.stop == Some(StopReason::EndToken));
            self.session.end_generation(last, unused);
        }
        self.session
    }

    fn end(&mut self, reason: StopReason, events: &mut Vec<BatchEvent>) {
        self.stop = Some(reason);
        let tail = self.text.tail();
        self.tell(Progress::Ended { reason, tail }, events);
    }

    fn fail(&mut self, error: EngineError, events: &mut Vec<BatchEvent>) {
        self.stop = Some(StopReason::Failed);
        self.tell(Progress::Failed(error), events);
    }

    fn tell(&self, progress: Progress, events: &mut Vec<BatchEvent>) {
        events.push(BatchEvent {
            sequence: self.id,
            progress,
        });
    }
}
