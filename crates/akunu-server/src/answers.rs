//! The answers to a question as they come.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use akunu::{StopReason, TokenLogprobs, Tokenizer};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::calls::{ToolCall, marks};
use crate::engine::{self, Engine, Event, What};
use crate::error::ApiError;
use crate::question::Unique;
use crate::reader::{Part, Reader};
use crate::transcript::Transcript;

/// Something that happened to one of the answers.
#[derive(Debug)]
pub(crate) struct Happening {
    pub choice: usize,
    pub what: Piece,
    /// The tokens since the last event, if log probabilities were asked for.
    pub scored: Vec<Scored>,
}

/// A token and how likely it was.
#[derive(Debug)]
pub(crate) struct Scored {
    pub chosen: Likely,
    /// The most likely tokens in its place.
    pub best: Vec<Likely>,
}

impl Scored {
    pub fn of(tokenizer: &Tokenizer, id: u32, logprobs: &TokenLogprobs) -> Scored {
        let likely = |id: u32, logprob: f32| Likely {
            id,
            bytes: tokenizer.token_bytes(id).unwrap_or_default(),
            logprob,
        };
        let best = logprobs.top.iter();
        Scored {
            chosen: likely(id, logprobs.chosen),
            best: best.map(|&(id, logprob)| likely(id, logprob)).collect(),
        }
    }
}

/// A token's bytes and the logarithm of its probability.
#[derive(Debug)]
pub(crate) struct Likely {
    pub id: u32,
    pub bytes: Vec<u8>,
    pub logprob: f32,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    Reasoning(String),
    /// A call begins, whose arguments follow.
    Begun(ToolCall),
    /// More of the arguments of the call that has begun.
    Arguments(String),
    /// The whole call that has begun, or what there is of it where it was cut.
    Call(ToolCall),
    Ended(Finish),
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model ended it.
    End,
    /// A stop text came.
    StopText,
    /// As many tokens as were asked for, or as the context holds.
    Length,
    /// It calls tools.
    Calls,
}

/// What answers took, all choices together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub prompt: usize,
    pub cached: usize,
    pub completion: usize,
    /// When it was asked for.
    pub since: Instant,
    /// When the first token came.
    pub first: Option<Instant>,
}

/// One whole answer.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<ToolCall>,
    pub finish: Option<Finish>,
    pub scored: Vec<Scored>,
}

/// Whether an answer has called tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Called {
    Nothing,
    Tools,
    /// The last call was cut.
    Cut,
}

/// Answers on their way. When this is dropped, the engine stops to work on them.
pub(crate) struct Answers {
    /// Keeps the model loaded.
    engine: Arc<Engine>,
    /// `None` where no answer has a token.
    events: Option<UnboundedReceiver<Event>>,
    /// One for each answer; `None` where all text is text.
    readers: Vec<Option<Reader>>,
    /// What an answer has called.
    called: Vec<Called>,
    /// Which answers have ended.
    has_ended: Vec<bool>,
    n_open: usize,
    /// Answers to each prompt.
    pub n_choices: usize,
    /// Tokens that end an answer.
    pub stop_ids: Vec<u32>,
    /// The check of a whole answer.
    pub unique: Option<Unique>,
    /// The text of each answer, if it is checked.
    said: Vec<String>,
    /// Tokens of each answer that have not been sent yet.
    scored: Vec<Vec<Scored>>,
    pending: VecDeque<Happening>,
    pub usage: Usage,
    /// Where the answers are logged, if they are.
    pub transcript: Option<Transcript>,
}

impl Answers {
    pub fn new(
        engine: Arc<Engine>,
        events: Option<UnboundedReceiver<Event>>,
        readers: Vec<Option<Reader>>,
        n_prompt: usize,
    ) -> Answers {
        Answers {
            engine,
            events,
            called: vec![Called::Nothing; readers.len()],
            has_ended: vec![false; readers.len()],
            n_open: readers.len(),
            n_choices: readers.len(),
            stop_ids: Vec::new(),
            unique: None,
            said: vec![String::new(); readers.len()],
            scored: readers.iter().map(|_| Vec::new()).collect(),
            readers,
            pending: VecDeque::new(),
            usage: Usage {
                prompt: n_prompt,
                cached: 0,
                completion: 0,
                since: Instant::now(),
                first: None,
            },
            transcript: None,
        }
    }

    /// So many answers without a token.
    pub fn empty(engine: Arc<Engine>, n_answers: usize, n_prompt: usize) -> Answers {
        let readers = (0..n_answers).map(|_| None).collect();
        let mut answers = Answers::new(engine, None, readers, n_prompt);
        for choice in 0..n_answers {
            answers.happened(choice, Piece::Ended(Finish::Length));
        }
        answers.n_open = 0;
        answers
    }

    /// What happens next; `None` when all answers have ended.
    pub fn poll_next(&mut self, cx: &mut Context) -> Poll<Option<Result<Happening, ApiError>>> {
        loop {
            if let Some(next) = self.pending.pop_front() {
                return Poll::Ready(Some(Ok(next)));
            }
            if self.n_open == 0 {
                return Poll::Ready(None);
            }
            let polled = self.events.as_mut().map(|events| events.poll_recv(cx));
            let Some(event) = std::task::ready!(polled.unwrap_or(Poll::Ready(None))) else {
                self.n_open = 0;
                return Poll::Ready(Some(Err(engine::stopped())));
            };
            if let Err(error) = self.take(event) {
                self.n_open = 0;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    /// All answers, when they have ended.
    pub async fn whole(&mut self) -> Result<Vec<Whole>, ApiError> {
        let mut all: Vec<Whole> = self.readers.iter().map(|_| Whole::default()).collect();
        while let Some(happening) = std::future::poll_fn(|cx| self.poll_next(cx)).await {
            let Happening {
                choice,
                what,
                scored,
            } = happening?;
            let one = &mut all[choice];
            one.scored.extend(scored);
            match what {
                Piece::Text(text) => one.text.push_str(&text),
                Piece::Reasoning(text) => one.reasoning.push_str(&text),
                Piece::Begun(_) | Piece::Arguments(_) => {}
                Piece::Call(call) => one.calls.push(call),
                Piece::Ended(finish) => one.finish = Some(finish),
            }
        }
        Ok(all)
    }

    fn take(&mut self, Event { choice, what }: Event) -> Result<(), ApiError> {
        // An answer that a token of the request has ended may go on in the engine.
        if self.has_ended[choice] {
            return Ok(());
        }
        match what {
            What::Token { id, .. } if self.stop_ids.contains(&id) => {
                self.usage.completion += 1;
                self.end(choice, StopReason::StopText)?;
            }
            What::Began { n_cached } => {
                if choice % self.n_choices.max(1) == 0 {
                    self.usage.cached += n_cached;
                }
            }
            What::Token { id, text, logprobs } => {
                if let Some(logprobs) = logprobs {
                    let scored = Scored::of(self.engine.model.tokenizer(), id, &logprobs);
                    self.scored[choice].push(scored);
                }
                self.usage.completion += 1;
                self.usage.first.get_or_insert_with(Instant::now);
                let text = if text.is_empty() {
                    self.mark(id).unwrap_or_default()
                } else {
                    text
                };
                self.read(choice, &text);
            }
            What::Ended { reason, tail } => {
                self.read(choice, &tail);
                self.end(choice, reason)?;
            }
            What::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn end(&mut self, choice: usize, reason: StopReason) -> Result<(), ApiError> {
        if let Some(reader) = &mut self.readers[choice] {
            let parts = reader.finish();
            self.tell(choice, parts);
        }
        let finish = self.finish(choice, reason);
        self.has_ended[choice] = true;
        self.n_open -= 1;
        if let Some(transcript) = &mut self.transcript {
            transcript.end(choice);
        }
        if let Some(unique) = self.unique.as_ref().filter(|_| finish == Finish::End) {
            unique.check(&self.said[choice])?;
        }
        self.happened(choice, Piece::Ended(finish));
        Ok(())
    }

    fn finish(&self, choice: usize, reason: StopReason) -> Finish {
        let is_cut = self.called[choice] == Called::Cut;
        match reason {
            StopReason::MaxTokens | StopReason::ContextFull | StopReason::Loop if is_cut => {
                Finish::Length
            }
            _ if self.called[choice] != Called::Nothing => Finish::Calls,
            StopReason::StopText => Finish::StopText,
            StopReason::MaxTokens | StopReason::ContextFull | StopReason::Loop => Finish::Length,
            _ => Finish::End,
        }
    }

    /// The text of a control token, if it marks a thought or a call.
    fn mark(&self, id: u32) -> Option<String> {
        let tokenizer = self.engine.model.tokenizer();
        let text = tokenizer.is_control(id).then(|| tokenizer.token_bytes(id));
        let text = String::from_utf8(text??).ok()?;
        marks().contains(text.as_str()).then_some(text)
    }

    fn read(&mut self, choice: usize, text: &str) {
        if let Some(transcript) = &mut self.transcript {
            transcript.push(choice, text);
        }
        let parts = match &mut self.readers[choice] {
            Some(reader) => reader.push(text),
            None if text.is_empty() => Vec::new(),
            None => vec![Part::Text(text.to_string())],
        };
        self.tell(choice, parts);
    }

    fn tell(&mut self, choice: usize, parts: Vec<Part>) {
        for part in parts {
            let what = match part {
                Part::Text(text) => {
                    if self.unique.is_some() {
                        self.said[choice].push_str(&text);
                    }
                    Piece::Text(text)
                }
                Part::Reasoning(text) => Piece::Reasoning(text),
                Part::Begun(call) => Piece::Begun(call),
                Part::Arguments(more) => Piece::Arguments(more),
                Part::Call(call) => {
                    self.called[choice] = if call.is_whole {
                        Called::Tools
                    } else {
                        Called::Cut
                    };
                    Piece::Call(call)
                }
            };
            self.happened(choice, what);
        }
    }

    fn happened(&mut self, choice: usize, what: Piece) {
        let scored = std::mem::take(&mut self.scored[choice]);
        self.pending.push_back(Happening {
            choice,
            what,
            scored,
        });
    }
}
