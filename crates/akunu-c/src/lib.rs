#![doc = include_str!("../README.md")]

mod border;
mod chat;
mod embedder;
mod fetch;
mod handles;
mod model;
mod options;
mod session;
mod status;
mod stream;
mod transcriber;
mod version;
