//! What the thread of a model is asked for, and what it tells.

use std::sync::Arc;

use akunu::{GenerateOptions, StopReason, TokenLogprobs};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::ApiError;
use crate::stats::Task;

/// Prompts, and the answers that are wanted to each. They are numbered in the order of the prompts.
pub(crate) struct Work {
    pub prompts: Vec<Vec<u32>>,
    /// How each answer to a prompt is made. The first reads the prompt, and the others take its pages over.
    pub choices: Vec<GenerateOptions>,
}

/// What happened to one of the answers.
pub(crate) struct Event {
    /// Which one.
    pub choice: usize,
    pub what: What,
}

/// What happened.
pub(crate) enum What {
    /// It has a place, and this many tokens of its prompt need not be read.
    Began { n_cached: usize },
    /// It has another token: the text that is complete with it.
    Token {
        id: u32,
        text: String,
        /// Its log probabilities, if they were asked for.
        logprobs: Option<TokenLogprobs>,
    },
    /// It ended, with the text that was held back.
    Ended { reason: StopReason, tail: String },
    /// It failed; the client gets this error.
    Failed(ApiError),
}

/// What the thread is asked for.
pub(super) enum Message {
    Answer(Box<Asked>),
    Embed {
        ids: Vec<u32>,
        reply: oneshot::Sender<Result<Vec<f32>, ApiError>>,
    },
    Score {
        ids: Vec<u32>,
        n_best: usize,
        reply: oneshot::Sender<Result<Vec<TokenLogprobs>, ApiError>>,
    },
}

/// An answer that waits for a place in the batch.
pub(super) struct Waiting {
    pub prompt: Arc<[u32]>,
    pub choice: usize,
    pub options: GenerateOptions,
    pub events: UnboundedSender<Event>,
    /// Given back when the answer has ended.
    pub place: OwnedSemaphorePermit,
    pub task: Task,
}

/// A request: one answer that reads the prompt, and those that take its pages over.
pub(super) struct Asked {
    pub first: Waiting,
    pub siblings: Vec<Waiting>,
}
