//! The answer of one sequence: what is still to be read and chosen, what was handed out, and when it ends.

use std::collections::VecDeque;

use crate::error::EngineError;
use crate::model::Model;
use crate::options::{GenerateOptions, StopReason, Token};
use crate::session::Session;
use crate::text::AnswerText;

/// An answer on its way.
pub(crate) struct Answer {
    pub options: GenerateOptions,
    text: AnswerText,
    /// What is to be in the session before the first token is chosen; empty once it has been read.
    pub prompt: Vec<u32>,
    /// The token that the next step reads: its keys and values are not in the pages yet.
    pub last: Option<u32>,
    /// Chosen and not yet handed out.
    pub queue: VecDeque<u32>,
    handed_out: usize,
    stop: Option<StopReason>,
}

/// What comes next of an answer.
pub(crate) enum Next {
    /// A token.
    Token(Token),
    /// Nothing more.
    Ended(StopReason),
    /// More must be computed first.
    Nothing,
}

impl Answer {
    /// An answer after what the session holds.
    pub fn new(session: &Session, options: GenerateOptions) -> Result<Answer, EngineError> {
        options.sampling.check()?;
        if session.tokens().is_empty() {
            return Err(EngineError::NothingToContinue);
        }
        Ok(Answer {
            text: AnswerText::new(session.model().shared_tokenizer(), &options.stop),
            options,
            prompt: Vec::new(),
            last: None,
            queue: VecDeque::new(),
            handed_out: 0,
            stop: None,
        })
    }

    /// An answer after a prompt that is still to be read.
    pub fn to_prompt(
        session: &Session,
        prompt: Vec<u32>,
        options: GenerateOptions,
    ) -> Result<Answer, EngineError> {
        options.sampling.check()?;
        session.check_prompt(&prompt)?;
        Ok(Answer {
            text: AnswerText::new(session.model().shared_tokenizer(), &options.stop),
            options,
            prompt,
            last: None,
            queue: VecDeque::new(),
            handed_out: 0,
            stop: None,
        })
    }

    pub fn is_running(&self) -> bool {
        self.stop.is_none()
    }

    pub fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// Ends it.
    pub fn end(&mut self, reason: StopReason) {
        self.stop = Some(reason);
    }

    /// Tokens that are still to be chosen.
    pub fn wanted(&self) -> usize {
        self.options
            .max_tokens
            .saturating_sub(self.handed_out + self.queue.len())
    }

    /// Whether a token that was chosen ends it.
    pub fn has_end(&self, model: &Model) -> bool {
        self.queue.iter().any(|&id| self.is_end(model, id))
    }

    /// Whether a token of this model ends it.
    fn is_end(&self, model: &Model, id: u32) -> bool {
        !self.options.ignore_end && model.tokenizer().end_ids().binary_search(&id).is_ok()
    }

    /// Takes note of tokens that were chosen.
    pub fn chosen(&mut self, tokens: &[u32]) {
        self.last = tokens.last().copied().or(self.last);
        self.queue.extend(tokens);
    }

    /// The next token, if one has been chosen; or the end.
    pub fn next(&mut self, model: &Model) -> Next {
        if let Some(reason) = self.stop {
            return Next::Ended(reason);
        }
        let reason = if self.options.cancel.is_set() {
            // Tokens that were computed ahead are rolled back: nobody wants them any more.
            Some(StopReason::Cancelled)
        } else if self.text.is_stopped() {
            Some(StopReason::StopText)
        } else if self.handed_out >= self.options.max_tokens {
            Some(StopReason::MaxTokens)
        } else if self.queue.front().is_some_and(|&id| self.is_end(model, id)) {
            Some(StopReason::EndToken)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.end(reason);
            return Next::Ended(reason);
        }
        let Some(id) = self.queue.pop_front() else {
            return Next::Nothing;
        };
        self.handed_out += 1;
        let text = self.text.push(id);
        Next::Token(Token { id, text })
    }

    /// The text that was held back: an incomplete character, or the beginning of a stop text that did not come.
    pub fn tail(&mut self) -> String {
        self.text.tail()
    }

    /// Leaves the session with its prompt, read or not, and what was handed out, and nothing after it.
    pub fn leave(&mut self, session: &mut Session) {
        if !self.prompt.is_empty() {
            session.sequence.tokens = std::mem::take(&mut self.prompt);
        }
        if let Some(last) = self.last.take() {
            session.sequence.tokens.push(last);
            let len = session.sequence.tokens.len() - self.queue.len();
            session.truncate(len);
        }
    }
}
