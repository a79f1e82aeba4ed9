//! Generation: an iterator of tokens.

use std::borrow::BorrowMut;
use std::ops::ControlFlow;

use crate::answer::{Answer, Next};
use crate::cancel::CancelFlag;
use crate::error::EngineError;
use crate::machine::{Machine, Outcome, Part};
use crate::options::{GenerateOptions, Overflow, StopReason, Token};
use crate::session::{Session, Shifted};
use crate::speculation::Speculated;

/// An iterator of tokens. It computes several in one submission; what the caller does not take is
/// rolled back. `S` is a session, or a reference to one.
///
/// ```no_run
/// use akunu_engine::GenerateOptions;
/// # fn example(session: &mut akunu_engine::Session) -> Result<(), akunu_engine::EngineError> {
/// let mut generation = session.generate(GenerateOptions::default())?;
/// for token in &mut generation {
///     print!("{}", token?.text);
/// }
/// // Text that was held back, because it could have become a stop text.
/// println!("{} ({:?})", generation.tail(), generation.stop());
/// # Ok(())
/// # }
/// ```
pub struct Generation<S: BorrowMut<Session>> {
    /// `None` only when the session has been taken out.
    session: Option<S>,
    answer: Answer,
    machine: Machine,
}

impl Session {
    /// Generates tokens after the present content.
    pub fn generate(
        &mut self,
        options: GenerateOptions,
    ) -> Result<Generation<&mut Session>, EngineError> {
        Generation::new(self, options)
    }

    /// Like [`Session::generate`], but the generation owns the session; [`Generation::into_session`] returns it.
    pub fn into_generation(
        self,
        options: GenerateOptions,
    ) -> Result<Generation<Session>, EngineError> {
        Generation::new(self, options)
    }
}

impl<S: BorrowMut<Session>> Generation<S> {
    fn new(mut session: S, options: GenerateOptions) -> Result<Self, EngineError> {
        let own = session.borrow_mut();
        if let Overflow::Shift { keep } = options.overflow
            && own.tokens().len() > own.context() as usize
            && let Shifted::MustRead { content, .. } = own.shift(keep)?
        {
            let watch = &mut |_| ControlFlow::Continue(());
            own.feed_content(&content, &CancelFlag::default(), watch)?;
        }
        if own.tokens().len() > own.context() as usize {
            return Err(EngineError::ContextFull {
                needed: own.tokens().len(),
                context: own.context(),
            });
        }
        let (max_chain, budget) = (options.max_chain, own.chunk());
        let answer = Answer::new(own, options)?;
        Ok(Generation {
            session: Some(session),
            answer,
            machine: Machine::new(max_chain.max(2), budget),
        })
    }

    /// Why it ended; `None` before the end.
    pub fn stop(&self) -> Option<StopReason> {
        self.answer.stop()
    }

    /// How many tokens were guessed so far, and how many of the guesses were right.
    pub fn speculated(&self) -> Speculated {
        self.answer.speculated()
    }

    /// The session that the tokens go into, as long as this holds it.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref().map(|session| session.borrow())
    }

    /// The text that was held back: an incomplete character, or the beginning of a stop text that did
    /// not come. Call it after the iterator has ended.
    pub fn tail(&mut self) -> String {
        self.answer.tail()
    }

    /// Ends the generation and returns the session, with the tokens that were returned and nothing after them.
    pub fn into_session(mut self) -> Option<S> {
        self.leave();
        self.session.take()
    }

    /// The next token, or `None` at the end.
    fn advance(&mut self) -> Result<Option<Token>, EngineError> {
        let Some(session) = self.session.as_mut() else {
            return Ok(None);
        };
        let session = session.borrow_mut();
        loop {
            match self.answer.next(session.model()) {
                Next::Token(token) => return Ok(Some(token)),
                Next::Ended(_) => return Ok(None),
                Next::Nothing => {}
            }
            let mut parts = [Part::new(session, &mut self.answer)];
            self.machine.step(&mut parts)?;
            let [part] = parts;
            if let Outcome::Failed(error) = part.outcome {
                return Err(error);
            }
        }
    }

    /// The session keeps the tokens that were returned, and nothing after them.
    fn leave(&mut self) {
        if let Some(session) = self.session.as_mut() {
            let session = session.borrow_mut();
            self.machine.abandon(session.model());
            self.answer.leave(session);
        }
    }
}

impl<S: BorrowMut<Session>> Iterator for Generation<S> {
    type Item = Result<Token, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.answer.end(StopReason::Failed);
        }
        next.transpose()
    }
}

impl<S: BorrowMut<Session>> Drop for Generation<S> {
    fn drop(&mut self) {
        self.leave();
    }
}
