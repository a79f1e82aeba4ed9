//! Models over HTTP.
//!
//! ```text
//! openai/ anthropic/ ollama/      a dialect: JSON in, a Question; Happenings, JSON out
//!        │ Question      ▲ Happening
//!        ▼               │
//! question.rs → answers.rs        tokens of the prompt; text, reasoning and tool calls of the answer
//!        │ Work          ▲ Event
//!        ▼               │
//! engine/                         one thread for each loaded model, which owns its batch
//! ```
//!
//! A dialect never sees the engine, and the engine has never heard of HTTP. Each choice of a request is a sequence of the
//! batch. Nobody tells the engine that a client has gone: dropping the receiver of the events does, and the engine looks
//! for that before every step.
#![forbid(unsafe_code)]

mod answers;
mod anthropic;
mod blocking;
mod body;
mod connection;
mod embedding;
mod engine;
mod error;
mod guard;
mod metrics;
mod models;
mod native;
mod ollama;
mod openai;
mod options;
mod page;
mod question;
mod reader;
mod router;
mod server;
mod stream;

pub use error::ServerError;
pub use models::{OpenError, Source};
pub use options::{Limits, Security, ServerOptions};
pub use server::{Handle, Server};
