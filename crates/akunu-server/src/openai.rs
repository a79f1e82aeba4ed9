//! OpenAI's protocol.

mod audio;
mod chat;
mod completions;
mod embeddings;
mod error;
mod format;
mod forms;
mod list;
mod logprobs;
mod making;
mod messages;
mod object;
mod responses;
mod tools;

pub(crate) use self::audio::{transcriptions, translations};
pub(crate) use self::chat::chat;
pub(crate) use self::completions::completions;
pub(crate) use self::embeddings::embeddings;
pub(crate) use self::error::ErrorBody;
pub(crate) use self::forms::Forms;
pub(crate) use self::list::{model, models};
pub(crate) use self::making::Making;
pub(crate) use self::messages::{Message, normal};
pub(crate) use self::object::PromptUsage;
pub(crate) use self::responses::responses;
pub(crate) use self::tools::{ToolField, tools};
