#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answers;
mod anthropic;
mod app;
mod blocking;
mod body;
mod calls;
mod clock;
mod connection;
mod content;
mod embedding;
mod engine;
mod error;
mod form;
mod guard;
mod guests;
mod kept;
mod loaded;
mod memory;
mod metrics;
mod models;
mod native;
mod ollama;
mod openai;
mod openapi;
mod options;
mod page;
mod question;
mod reader;
mod reply;
mod router;
mod server;
mod source;
mod speech;
mod stats;
mod stream;
mod transcript;

pub use error::{OpenError, ServerError};
pub use options::{Limits, Security, ServerOptions};
pub use server::{Handle, Server};
pub use source::{ModelSettings, OpenModel, Served, Source};
