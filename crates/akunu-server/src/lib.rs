#![doc = include_str!("../README.md")]
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
mod guests;
mod memory;
mod metrics;
mod models;
mod multipart;
mod native;
mod ollama;
mod openai;
mod options;
mod page;
mod question;
mod reader;
mod rerank;
mod router;
mod server;
mod speech;
mod stream;
mod transcript;

pub use error::ServerError;
pub use models::{OpenError, Served, Source};
pub use options::{Limits, Security, ServerOptions};
pub use server::{Handle, Server};
