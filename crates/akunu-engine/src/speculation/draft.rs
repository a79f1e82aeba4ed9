//! A draft model, which reads what the model reads and says how it would go on.
//!
//! A guess takes the time of reading what is new since the last guesses, usually a token or two, and of one step of the
//! draft model. Reading a prompt and loading programs happen once, so that neither counts as the time of a guess.

use std::ops::ControlFlow;
use std::time::Instant;

use super::{DraftModel, Speculation};
use crate::error::EngineError;
use crate::options::GenerateOptions;
use crate::session::{Session, SessionOptions};

/// Tokens that are read before guessing, at most, where nothing but the answer has grown.
const MAX_NEW: usize = 32;
/// Weight of a new time against those before.
const NEW: f64 = 0.2;

/// A draft model with the text of one answer.
pub(super) struct Draft {
    session: Session,
    /// How it chooses tokens: as the model does.
    options: GenerateOptions,
    /// Seconds of a guess lately; 0 before any was made.
    seconds: f64,
}

impl Draft {
    /// Drafts for an answer with these options, in a session of `context` tokens.
    pub fn new(
        draft: &DraftModel,
        options: &GenerateOptions,
        context: u32,
    ) -> Result<Draft, EngineError> {
        let session = draft.model.session(SessionOptions {
            context: Some(context),
            ..SessionOptions::default()
        })?;
        let options = GenerateOptions {
            sampling: options.sampling,
            logit_bias: options.logit_bias.clone(),
            dry_breakers: options.dry_breakers.clone(),
            cancel: options.cancel.clone(),
            ignore_end: true,
            speculation: Speculation::off(),
            ..GenerateOptions::default()
        };
        Ok(Draft {
            session,
            options,
            seconds: 0.0,
        })
    }

    /// Seconds that a guess took lately.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The `n` tokens that the draft model says after a text: fewer at the end of the context; none if it has no pages
    /// left, or if the answer is cancelled meanwhile.
    pub fn guess(&mut self, text: &[u32], n: usize) -> Result<Vec<u32>, EngineError> {
        match self.try_guess(text, n) {
            Err(EngineError::PoolFull { .. } | EngineError::Cancelled { .. }) => Ok(Vec::new()),
            guessed => guessed,
        }
    }

    fn try_guess(&mut self, text: &[u32], n: usize) -> Result<Vec<u32>, EngineError> {
        let n_programs = self.session.model().runtime().n_programs();
        let mut begin = Instant::now();
        let cancel = self.options.cancel.clone();
        let fed = self.session.feed_watched(text, &mut |_| {
            if cancel.is_set() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if fed.processed > MAX_NEW {
            begin = Instant::now();
        }
        let generation = self.session.generate(GenerateOptions {
            max_tokens: n,
            max_chain: n as u32,
            ..self.options.clone()
        })?;
        let tokens = generation.map(|token| token.map(|token| token.id));
        let tokens: Vec<u32> = tokens.collect::<Result<_, _>>()?;
        if self.session.model().runtime().n_programs() == n_programs {
            self.note(begin.elapsed().as_secs_f64() / n as f64);
        }
        Ok(tokens)
    }

    fn note(&mut self, seconds: f64) {
        self.seconds = match self.seconds {
            0.0 => seconds,
            // Somebody else had the machine: one such time says little.
            before => before + NEW * (seconds.min(2.0 * before) - before),
        };
    }
}
