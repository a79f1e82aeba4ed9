//! Generation: an iterator of tokens.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use akunu_kernels::Ticket;

use crate::error::EngineError;
use crate::model::Model;
use crate::sampling::Sampling;
use crate::session::{DecodePlans, Session};
use crate::text::AnswerText;

/// Stops a generation from another thread.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the generation to stop: after the submission under way it hands out no further token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Makes the flag usable again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// The flag itself, for whoever sets such flags: a signal handler.
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether somebody asked to stop since the last reset.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happens when the context is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The answer ends with [`StopReason::ContextFull`].
    #[default]
    Stop,
    /// The older half of the tokens after the first `keep` is dropped, and the answer goes on.
    Shift {
        /// Tokens at the beginning that stay: the system prompt.
        keep: usize,
    },
}

/// What to generate.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// At most this many tokens.
    pub max_tokens: usize,
    /// How a token is chosen.
    pub sampling: Sampling,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// What to do when the context is full.
    pub overflow: Overflow,
    /// Go on at the model's own end tokens.
    pub ignore_end: bool,
    /// Most tokens of one submission; in a [`Batch`](crate::Batch) it is always one of each sequence.
    pub max_chain: u32,
    /// Stops it from another thread.
    pub cancel: CancelFlag,
}

impl Default for GenerateOptions {
    fn default() -> GenerateOptions {
        GenerateOptions {
            max_tokens: usize::MAX,
            sampling: Sampling::greedy(),
            stop: Vec::new(),
            overflow: Overflow::Stop,
            ignore_end: false,
            max_chain: 32,
            cancel: CancelFlag::default(),
        }
    }
}

impl GenerateOptions {
    /// Whether a token of this model ends the answer.
    pub(crate) fn ends_with(&self, model: &Model, id: u32) -> bool {
        !self.ignore_end && model.tokenizer().end_ids().binary_search(&id).is_ok()
    }
}

/// A generated token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: u32,
    /// The text that is complete with it: empty in the middle of a character.
    pub text: String,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model chose an end token.
    EndToken,
    /// A stop text came.
    StopText,
    /// As many tokens as were asked for.
    MaxTokens,
    /// The context holds no more.
    ContextFull,
    /// Stopped from outside.
    Cancelled,
    /// Something failed, the device for example. The error itself was handed out.
    Failed,
}

/// An iterator of tokens. It computes several in one submission; what the caller does not take is
/// rolled back.
pub struct Generation<'s, 'm> {
    session: &'s mut Session<'m>,
    plans: Arc<DecodePlans>,
    options: GenerateOptions,
    text: AnswerText<'m>,
    /// Chosen and not yet handed out.
    queue: VecDeque<u32>,
    /// The last token chosen: its keys and values are not in the cache yet.
    last: Option<u32>,
    /// Steps that the device computes meanwhile.
    started: Option<Started>,
    handed_out: usize,
    chain: u32,
    stop: Option<StopReason>,
}

/// A submission under way.
struct Started {
    ticket: Ticket,
    n: u32,
    begin: Instant,
}

/// A submission should not take longer than this: the caller wants to see text, and the operating
/// system ends GPU work that takes seconds.
const TARGET: Duration = Duration::from_millis(60);

impl<'s, 'm> Generation<'s, 'm> {
    pub(crate) fn new(
        session: &'s mut Session<'m>,
        plans: Arc<DecodePlans>,
        options: GenerateOptions,
    ) -> Self {
        Generation {
            text: AnswerText::new(session.model().tokenizer(), &options.stop),
            session,
            plans,
            options,
            queue: VecDeque::new(),
            last: None,
            started: None,
            handed_out: 0,
            chain: 1,
            stop: None,
        }
    }

    /// Why it ended; `None` while it goes on.
    pub fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// The next id, or `None` at the end.
    fn next_id(&mut self) -> Result<Option<u32>, EngineError> {
        if self.stop.is_some() {
            return Ok(None);
        }
        if self.handed_out >= self.options.max_tokens {
            return Ok(self.end(StopReason::MaxTokens));
        }
        if self.options.cancel.is_set() {
            // Tokens that were computed ahead are rolled back: nobody wants them any more.
            return Ok(self.end(StopReason::Cancelled));
        }
        if self.queue.is_empty() && !self.refill()? {
            return Ok(None);
        }
        let Some(id) = self.queue.pop_front() else {
            return Ok(None);
        };
        if self.is_end(id) {
            self.queue.push_front(id);
            return Ok(self.end(StopReason::EndToken));
        }
        self.handed_out += 1;
        Ok(Some(id))
    }

    /// Computes the next tokens; `false` when it must end.
    fn refill(&mut self) -> Result<bool, EngineError> {
        let Some(last) = self.last else {
            let first = self.session.choose(&self.plans)?;
            self.last = Some(first);
            self.queue.push_back(first);
            return Ok(true);
        };
        let started = match self.started.take() {
            Some(started) => started,
            None => {
                let room = self.session.make_room(self.options.overflow, last)?;
                if room == 0 {
                    self.end(StopReason::ContextFull);
                    return Ok(false);
                }
                self.start(room)?
            }
        };
        let Started { ticket, n, begin } = started;
        let chosen = self.session.finish_decode(ticket, last, n)?;
        self.adapt(n, begin.elapsed());
        self.last = chosen.last().copied();
        self.queue.extend(chosen);
        self.start_ahead()?;
        Ok(true)
    }

    /// Starts as many steps as a submission should have, at most `room`.
    fn start(&mut self, room: usize) -> Result<Started, EngineError> {
        let n = (self.chain as usize).min(room).min(self.wanted()).max(1) as u32;
        Ok(Started {
            begin: Instant::now(),
            ticket: self.session.start_decode(&self.plans, n)?,
            n,
        })
    }

    /// Lets a device that can do so compute the next tokens while these are handed out.
    fn start_ahead(&mut self) -> Result<(), EngineError> {
        let room = self.session.context() as usize - self.session.tokens().len();
        let ends = self.queue.iter().any(|&id| self.is_end(id));
        let runs_ahead = self.session.model().device().runs_ahead();
        if runs_ahead && room > 0 && self.wanted() > 0 && !ends {
            self.started = Some(self.start(room)?);
        }
        Ok(())
    }

    /// Tokens that are still to be chosen.
    fn wanted(&self) -> usize {
        self.options.max_tokens - self.handed_out - self.queue.len()
    }

    /// Whether a token ends the answer.
    fn is_end(&self, id: u32) -> bool {
        self.options.ends_with(self.session.model(), id)
    }

    /// Longer chains while they stay under the target time.
    fn adapt(&mut self, n: u32, took: Duration) {
        let fits = (TARGET.as_secs_f64() / (took.as_secs_f64() / f64::from(n)).max(1e-6)) as u32;
        self.chain = (2 * n).min(fits).clamp(1, self.options.max_chain.max(1));
    }

    fn end(&mut self, reason: StopReason) -> Option<u32> {
        self.stop = Some(reason);
        None
    }

    /// The text that was held back: an incomplete character, or the beginning of a stop text that did
    /// not come. To be asked for once the iterator has ended.
    pub fn tail(&mut self) -> String {
        self.text.tail()
    }
}

impl Iterator for Generation<'_, '_> {
    type Item = Result<Token, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        let id = match self.next_id() {
            Err(error) => {
                self.stop = Some(StopReason::Failed);
                return Some(Err(error));
            }
            Ok(None) => return None,
            Ok(Some(id)) => id,
        };
        let text = self.text.push(id);
        if self.text.is_stopped() {
            self.stop = Some(StopReason::StopText);
        }
        Some(Ok(Token { id, text }))
    }
}

impl Drop for Generation<'_, '_> {
    /// The session keeps what was handed out, and nothing after it.
    fn drop(&mut self) {
        if let Some(started) = self.started.take() {
            // What it computes is not wanted; an error comes again with the next submission.
            let _ = self.session.model().device().wait(started.ticket);
        }
        if let Some(last) = self.last {
            self.session.end_generation(last, self.queue.len());
        }
    }
}
