//! Answers that follow a grammar or people's own rules, and answers that are guessed ahead.

mod cancelled;
mod drafting;
mod gbnf;
mod grammar;
mod hostile;
mod mtp;
mod rules;
mod speculation;
mod talk;
