//! Ollama's protocol: one JSON object a line.

mod answer;
mod chat;
mod embed;
mod error;
mod generate;
mod keep;
mod list;
mod options;
mod running;
mod time;

pub(crate) use self::chat::chat;
pub(crate) use self::embed::{embed, embeddings};
pub(crate) use self::error::OllamaError;
pub(crate) use self::generate::generate;
pub(crate) use self::list::{show, tags, version};
pub(crate) use self::running::running;
