//! What completions of all kinds have in common.

use schemars::JsonSchema;
use serde::Serialize;

use super::ErrorBody;
use crate::answers::{self, Finish};
use crate::clock::{new_id, now};

/// A completion, or a part of one. `usage` is left out of the parts where nobody asked for it, and null in all but the last.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Completion_of_{C}")]
pub(crate) struct Completion<C> {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    system_fingerprint: &'static str,
    choices: Vec<C>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<Usage>>,
}

/// An event of a stream.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Event_of_{C}")]
pub(crate) enum Chunk<C> {
    Part(Completion<C>),
    Failed(ErrorBody),
}

/// What made an answer: with another version the same seed may give another one.
const FINGERPRINT: &str = concat!("akunu-", env!("CARGO_PKG_VERSION"));

/// What all objects of an answer have in common.
pub(super) struct Head {
    id: String,
    created: u64,
    model: String,
    /// Whether the last part of a stream has the usage.
    with_usage: bool,
}

impl Head {
    pub fn new(prefix: &str, model: String, with_usage: bool) -> Head {
        Head {
            id: new_id(prefix),
            created: now(),
            model,
            with_usage,
        }
    }

    /// All of an answer.
    pub fn whole<C>(
        self,
        object: &'static str,
        choices: Vec<C>,
        usage: &answers::Usage,
    ) -> Completion<C> {
        self.object(object, choices, Some(Some(usage.into())))
    }

    /// A part of an answer.
    pub fn part<C>(&self, object: &'static str, choice: C) -> Chunk<C> {
        let usage = self.with_usage.then_some(None);
        Chunk::Part(self.object(object, vec![choice], usage))
    }

    /// The last part, if there is one.
    pub fn last<C>(&self, object: &'static str, usage: &answers::Usage) -> Vec<Chunk<C>> {
        let last = self.with_usage.then(|| {
            let usage = Some(Some(usage.into()));
            Chunk::Part(self.object(object, Vec::new(), usage))
        });
        last.into_iter().collect()
    }

    fn object<C>(
        &self,
        object: &'static str,
        choices: Vec<C>,
        usage: Option<Option<Usage>>,
    ) -> Completion<C> {
        Completion {
            id: self.id.clone(),
            object,
            created: self.created,
            model: self.model.clone(),
            system_fingerprint: FINGERPRINT,
            choices,
            usage,
        }
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    /// The older name of it.
    FunctionCall,
}

impl FinishReason {
    /// The reason as somebody is told who asked in the older way or not.
    pub fn of(finish: Finish, is_legacy: bool) -> FinishReason {
        match finish {
            Finish::Calls if is_legacy => FinishReason::FunctionCall,
            finish => finish.into(),
        }
    }
}

impl From<Finish> for FinishReason {
    fn from(finish: Finish) -> FinishReason {
        match finish {
            Finish::End | Finish::StopText => FinishReason::Stop,
            Finish::Length => FinishReason::Length,
            Finish::Calls => FinishReason::ToolCalls,
        }
    }
}

/// What an answer took.
#[derive(Serialize, JsonSchema)]
struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: CachedTokens,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CachedTokens {
    pub cached_tokens: usize,
}

impl From<&answers::Usage> for Usage {
    fn from(usage: &answers::Usage) -> Usage {
        Usage {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.prompt + usage.completion,
            prompt_tokens_details: CachedTokens {
                cached_tokens: usage.cached,
            },
        }
    }
}

/// What texts took that nothing was generated from.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PromptUsage {
    prompt_tokens: usize,
    total_tokens: usize,
}

impl PromptUsage {
    pub fn new(n_tokens: usize) -> PromptUsage {
        PromptUsage {
            prompt_tokens: n_tokens,
            total_tokens: n_tokens,
        }
    }
}
