//! OpenAI's protocol.

mod audio;
mod chat;
mod completions;
mod embeddings;
mod fields;
mod list;
mod logprobs;
mod responses;

pub(crate) use self::audio::{transcriptions, translations};
pub(crate) use self::chat::chat;
pub(crate) use self::completions::completions;
pub(crate) use self::embeddings::embeddings;
pub(crate) use self::fields::{ToolField, tools};
pub(crate) use self::list::{model, models};
pub(crate) use self::responses::responses;

use serde_json::{Value, json};

use crate::answers::{Finish, Usage};

/// OpenAI's name for the end of an answer.
pub(crate) fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::End | Finish::StopText => "stop",
        Finish::Length => "length",
        Finish::Calls => "tool_calls",
    }
}

pub(crate) fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    })
}

/// Names an object: a chat completion, a message, a response.
pub(crate) fn new_id(prefix: &str) -> String {
    format!(
        "{prefix}{:08x}{:08x}",
        akunu::random_seed(),
        akunu::random_seed()
    )
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}
