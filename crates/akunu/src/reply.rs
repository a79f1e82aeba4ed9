//! The reply to a question, as a stream.

use std::time::{Duration, Instant};

use akunu_engine::{Fed, Generation, ImageSpan, Session, Speculated, StopReason, Token};
use akunu_tokenizer::Message;

use crate::channels::{Channels, Heard};
use crate::chat::Started;
use crate::error::Error;
use crate::history::{Before, History, Open};

/// A reply: an iterator of pieces of text.
///
/// ```no_run
/// # let mut chat = akunu::Model::open("model.gguf")?.chat()?;
/// let mut reply = chat.ask("Name three rivers.")?;
/// while let Some(piece) = reply.next() {
///     print!("{}", piece?);
///     if reply.text().lines().count() > 3 {
///         break;
///     }
/// }
/// println!("{:?}", reply.stop());
/// # Ok::<(), akunu::Error>(())
/// ```
///
/// When it is dropped, the conversation keeps the pieces that were taken as the answer. After an error, or if nothing was
/// taken, the conversation is as it was before the question.
pub struct Reply<'c> {
    generation: Generation<&'c mut Session>,
    history: &'c mut History,
    /// `None` once the reply is in the history.
    before: Option<Before>,
    /// What it goes on with: nothing, or the text of a reply that was cut.
    begun: String,
    /// Tokens of the session before those of the reply.
    n_prompt: usize,
    /// The images among those.
    images: Vec<ImageSpan>,
    channels: Channels,
    thought: String,
    text: String,
    /// Tokens that say how likely they were.
    tokens: Vec<Token>,
    stats: ReplyStats,
    /// When the question was read, and then when the first token came.
    since: Instant,
    has_failed: bool,
}

/// Tokens and times of a reply.
///
/// ```no_run
/// # let mut chat = akunu::Model::open("model.gguf")?.chat()?;
/// let mut reply = chat.ask("Name three rivers.")?;
/// let text: String = reply.by_ref().collect::<Result<_, _>>()?;
/// let stats = reply.finish();
/// println!("{} tokens, {:?} to the first", stats.tokens, stats.reading + stats.first);
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyStats {
    /// Tokens of the conversation before the reply: those that were already in the session, and those that were read.
    pub prompt: Fed,
    /// Tokens of the reply.
    pub tokens: usize,
    /// The seed of its draws.
    pub seed: u64,
    /// Time to read the new part of the conversation.
    pub reading: Duration,
    /// Time from there to the first token.
    pub first: Duration,
    /// Time from there to the end.
    pub rest: Duration,
    /// How many tokens were guessed, and how many of the guesses were right.
    pub speculated: Speculated,
    /// Why it ended; `None` if it was dropped before its end.
    pub stop: Option<StopReason>,
}

impl ReplyStats {
    /// Tokens a second after the first one; `None` for a reply of fewer than two. Time in which nobody asked for the next piece
    /// counts.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.rest.as_secs_f64();
        (self.tokens > 1 && seconds > 0.0).then(|| (self.tokens - 1) as f64 / seconds)
    }
}

impl<'c> Reply<'c> {
    pub(crate) fn new(started: Started<'c>, history: &'c mut History, before: Before) -> Reply<'c> {
        Reply {
            generation: started.generation,
            history,
            before: Some(before),
            begun: started.text,
            n_prompt: started.n_prompt,
            images: started.images,
            channels: started.channels,
            thought: String::new(),
            text: String::new(),
            tokens: Vec::new(),
            stats: started.stats,
            since: Instant::now(),
            has_failed: false,
        }
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The model's thoughts so far, if it writes them in a separate channel as gpt-oss does. They are not part of the text, and
    /// the conversation does not keep them.
    pub fn thought(&self) -> &str {
        &self.thought
    }

    /// The tokens so far, if [`ChatOptions::logprobs`](crate::ChatOptions::logprobs) asks for their log
    /// probabilities.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Why it ended; `None` before the end.
    pub fn stop(&self) -> Option<StopReason> {
        self.generation.stop()
    }

    /// How many of the messages the model did not see: the context does not hold them.
    pub fn n_forgotten(&self) -> usize {
        self.history.window.n_forgotten()
    }

    /// Ends the reply; returns its tokens and times.
    pub fn finish(mut self) -> ReplyStats {
        self.conclude();
        self.stats
    }

    /// The next piece, or `None` at the end.
    fn advance(&mut self) -> Result<Option<String>, Error> {
        while let Some(token) = self.generation.next() {
            let token = token?;
            if self.stats.tokens == 0 {
                self.stats.first = self.since.elapsed();
                self.since = Instant::now();
            }
            self.stats.tokens += 1;
            let text = self.heard(token.text.clone());
            if let Some(mark) = self.control(token.id) {
                self.channels.mark(&mark);
            }
            if token.logprobs.is_some() {
                self.tokens.push(token);
            }
            if text.is_some() {
                return Ok(text);
            }
        }
        let tail = self.generation.tail();
        Ok(self.heard(tail))
    }

    /// The text, if it belongs to the answer. Thoughts are kept, and headers dropped.
    fn heard(&mut self, text: String) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        match self.channels.hear(&text) {
            Heard::Said => Some(text),
            Heard::Thought => {
                self.thought.push_str(&text);
                None
            }
            Heard::Nothing => None,
        }
    }

    /// The name of a control token.
    fn control(&self, id: u32) -> Option<String> {
        let tokenizer = self.generation.session()?.model().tokenizer();
        let name = tokenizer.is_control(id).then(|| tokenizer.token_bytes(id));
        String::from_utf8(name??).ok()
    }

    /// Writes it into the history, once.
    fn conclude(&mut self) {
        let Some(before) = self.before.take() else {
            return;
        };
        let is_cut = matches!(self.generation.stop(), None | Some(StopReason::Cancelled));
        let is_unheard = is_cut && self.stats.tokens == 0 && self.begun.is_empty();
        if self.has_failed || is_unheard {
            self.history.restore(before);
            return;
        }
        self.stats.rest = self.since.elapsed();
        self.stats.stop = self.generation.stop();
        self.stats.speculated = self.generation.speculated();
        let text = [&self.begun[..], &self.text].concat();
        let answer = Message::new("assistant", text.trim());
        self.history.messages.push(answer);
        self.history.open = Some(Open {
            text,
            n_prompt: self.n_prompt,
            images: std::mem::take(&mut self.images),
            channels: self.channels.clone(),
        });
        self.history.last = Some(self.stats);
    }
}

impl Iterator for Reply<'_> {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        match &next {
            Ok(piece) => self.text.extend(piece.as_deref()),
            Err(_) => self.has_failed = true,
        }
        next.transpose()
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        self.conclude();
    }
}
