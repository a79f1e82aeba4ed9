//! The tests of the program, one module a command or a subject.

#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod chat;
mod cli;
mod completions;
#[cfg(unix)]
mod conversation_at_a_terminal;
#[cfg(unix)]
mod documented;
mod embed;
#[cfg(unix)]
mod fetching;
#[cfg(unix)]
mod files;
mod imatrix;
#[cfg(unix)]
mod interrupted;
mod measuring;
#[path = "../../../akunu/tests/support/pictured.rs"]
mod pictured;
mod pictures;
mod program;
mod quantize;
mod running;
mod served;
mod tokenize;
mod transcribe;
