#![doc = include_str!("../README.md")]

mod border;
mod chat;
mod embedder;
mod fetch;
mod handles;
mod model;
mod options;
mod reranker;
mod session;
mod status;
mod stream;
mod together;
mod transcriber;
mod version;
