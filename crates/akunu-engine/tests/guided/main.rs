//! Answers that follow a grammar or people's own rules, and answers that are guessed ahead.

#[path = "../support/mod.rs"]
mod support;

mod grammar;
mod hostile;
mod rules;
mod speculation;
mod talk;
