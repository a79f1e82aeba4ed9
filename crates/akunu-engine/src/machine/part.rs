//! One sequence in a step.

use crate::answer::Answer;
use crate::error::EngineError;
use crate::options::{Overflow, StopReason};
use crate::runtime::Runtime;
use crate::session::{Session, Shifted};

/// A sequence that takes part.
pub(crate) struct Part<'a> {
    pub session: &'a mut Session,
    pub answer: &'a mut Answer,
    /// What became of it in this step.
    pub outcome: Outcome,
}

/// What a step did for a sequence.
#[derive(Debug, Default)]
pub(crate) enum Outcome {
    /// Nothing: it waits for others, or has ended.
    #[default]
    None,
    /// A piece of its prompt was read.
    Read,
    /// Its first token was chosen from logits that were there: it takes part from the next step on.
    Began,
    /// Tokens were chosen, from this row of the step's logits.
    Chosen { row: usize },
    /// It failed by itself.
    Failed(EngineError),
}

impl Part<'_> {
    pub fn is_running(&self) -> bool {
        self.answer.is_running() && !matches!(self.outcome, Outcome::Failed(_))
    }

    /// Whether it has a token to go on from.
    pub fn is_single(&self) -> bool {
        self.is_running() && self.answer.last.is_some() && matches!(self.outcome, Outcome::None)
    }

    /// Whether it has a prompt to read.
    pub fn is_reader(&self) -> bool {
        self.is_running() && self.answer.last.is_none() && self.unread() > 0
    }

    /// Tokens of its prompt that are still to be read.
    pub fn unread(&self) -> usize {
        self.answer
            .prompt
            .len()
            .saturating_sub(self.session.sequence.cached)
    }

    /// Makes room for a step, or ends the answer.
    pub fn prepare(&mut self) {
        if !self.is_running() {
            return;
        }
        if self.answer.options.cancel.is_set() {
            return self.answer.end(StopReason::Cancelled);
        }
        if self.answer.wanted() == 0 && self.answer.queue.is_empty() {
            return self.answer.end(StopReason::MaxTokens);
        }
        let begun = self.begin();
        let ready = match self.outcome {
            Outcome::Began => begun,
            _ => begun.and_then(|()| self.make_room()),
        };
        if let Err(error) = ready {
            self.outcome = Outcome::Failed(error);
        }
    }

    /// The first step of an answer: what was read before gives the first token, or its last token is read again.
    fn begin(&mut self) -> Result<(), EngineError> {
        if self.answer.last.is_some() {
            return Ok(());
        }
        if !self.answer.prompt.is_empty() {
            if self.session.sequence.cached == 0 {
                self.session.reuse(&self.answer.prompt);
            }
            return Ok(());
        }
        let model = self.session.model().clone();
        let mut runtime = model.runtime();
        let sequence = &mut self.session.sequence;
        runtime.set_rule(sequence, self.answer.options.sampling.rule())?;
        if runtime.has_logits(sequence) {
            let token = runtime.choose(sequence, self.answer.options.sampling.choice())?;
            self.answer.chosen(&[token]);
            self.outcome = Outcome::Began;
            return Ok(());
        }
        drop(runtime);
        match self.session.take_last() {
            Ok(last) => self.answer.last = Some(last),
            Err(tokens) => self.answer.prompt = tokens,
        }
        Ok(())
    }

    /// Makes room in a full context, or ends the answer.
    fn make_room(&mut self) -> Result<(), EngineError> {
        let is_full = self.session.tokens().len() == self.session.context() as usize;
        if self.answer.last.is_none() || !is_full {
            return Ok(());
        }
        let shifted = match self.answer.options.overflow {
            Overflow::Stop => Shifted::Nothing,
            Overflow::Shift { keep } => self.session.shift(keep)?,
        };
        match shifted {
            Shifted::Moved => {}
            Shifted::MustRead(mut tokens) => {
                tokens.extend(self.answer.last.take());
                self.session.reuse(&tokens);
                self.answer.prompt = tokens;
            }
            Shifted::Nothing if self.answer.queue.is_empty() => {
                self.answer.end(StopReason::ContextFull);
            }
            Shifted::Nothing => {}
        }
        Ok(())
    }

    /// Its last token was read, and these were chosen, one after another; all but the last were read too.
    pub fn take(&mut self, runtime: &mut Runtime, chosen: &[u32], row: usize) {
        let sequence = &mut self.session.sequence;
        if let Some(last) = self.answer.last {
            runtime.stored(sequence, &[last]);
        }
        runtime.stored(sequence, &chosen[..chosen.len() - 1]);
        sequence.known = sequence.cached + 1;
        self.answer.chosen(chosen);
        self.outcome = Outcome::Chosen { row };
    }
}
