//! `bench --texts`: what guessing tokens ahead saves on texts that people have.
//!
//! Each text is answered without guesses and with them, in turn. Every run has a model of its own: what an earlier one has
//! said would otherwise be guessed from.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use akunu::{ChatOptions, Lookup, Model, ReplyStats, Sampling, Speculation};
use serde::Serialize;
use std::io::Write;

/// What is asked, by its name in the table.
const TEXTS: [(&str, &str); 3] = [
    (
        "edit a file",
        "Rename the method `peek` to `top` in this file, and repeat the whole file with that one change.\n\n\
         ```rust\n/// A stack of numbers with a fixed capacity.\npub struct Stack {\n    items: Vec<i64>,\n    capacity: usize,\n}\n\n\
         impl Stack {\n    /// An empty stack.\n    pub fn new(capacity: usize) -> Stack {\n        Stack {\n            \
         items: Vec::with_capacity(capacity),\n            capacity,\n        }\n    }\n\n    \
         /// Puts a number on top; returns false if there is no room.\n    pub fn push(&mut self, item: i64) -> bool {\n        \
         if self.items.len() == self.capacity {\n            return false;\n        }\n        self.items.push(item);\n        \
         true\n    }\n\n    /// The number on top.\n    pub fn peek(&self) -> Option<&i64> {\n        self.items.last()\n    }\n\n    \
         /// How many numbers there are.\n    pub fn len(&self) -> usize {\n        self.items.len()\n    }\n}\n```",
    ),
    (
        "answer",
        "The lighthouse on Harrow Point was built in 1871 by the engineer Ada Thorne, after the steamer Margaret had run \
         aground there with forty passengers. Its lamp was lit with whale oil until 1902, with paraffin until 1931, and has \
         been electric since. The keeper's house was sold in 1988 and is a museum today, which is open from April to October.\n\n\
         Who built the lighthouse, and why? When can the museum be visited?",
    ),
    (
        "prose",
        "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    ),
];

/// How one text went.
#[derive(Serialize)]
pub struct TextOutcome {
    pub text: &'static str,
    /// Tokens of the answer.
    pub tokens: usize,
    /// Medians of the runs.
    pub tok_s_without: f64,
    pub tok_s_with: f64,
    /// Of the last run.
    pub drafted: u32,
    pub accepted: u32,
    /// Whether the answer was the same with and without guesses in all runs.
    pub is_same: bool,
}

/// Runs all texts as often as asked for, with answers of at most so many tokens. `open` opens the model.
pub fn measure(
    open: &dyn Fn() -> Result<Model, Failure>,
    (runs, max_tokens): (u32, u32),
    interrupt: &Interrupt,
) -> Result<Vec<TextOutcome>, Failure> {
    let options = |model: &Model, lookup: Lookup| ChatOptions {
        sampling: Sampling::greedy(),
        max_tokens: max_tokens as usize,
        cancel: interrupt.flag().clone(),
        speculation: Speculation {
            lookup,
            ..Speculation::default()
        },
        ..model.chat_options()
    };
    let answer = |question: &str, lookup: Lookup| -> Result<(String, ReplyStats), Failure> {
        let model = open()?;
        let mut chat = model.chat_with(options(&model, lookup))?;
        let mut reply = chat.ask(question)?;
        for piece in reply.by_ref() {
            piece?;
        }
        let text = reply.text().to_string();
        Ok((text, reply.finish()))
    };
    let of_text = |(text, question): (&'static str, &str)| {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            without.push(answer(question, Lookup::Off)?);
            with.push(answer(question, Lookup::Auto)?);
            interrupt.check()?;
        }
        let speed =
            |runs: &[(String, ReplyStats)]| median(runs.iter().map(|(_, stats)| rate(stats)));
        let last = &with[with.len() - 1].1;
        Ok(TextOutcome {
            text,
            tokens: last.tokens,
            tok_s_without: speed(&without),
            tok_s_with: speed(&with),
            drafted: last.speculated.n_drafted(),
            accepted: last.speculated.n_accepted(),
            is_same: with
                .iter()
                .chain(&without)
                .all(|(said, _)| *said == with[0].0),
        })
    };
    TEXTS.into_iter().map(of_text).collect()
}

/// Tokens a second after the first.
fn rate(stats: &ReplyStats) -> f64 {
    stats.tokens.saturating_sub(1) as f64 / stats.rest.as_secs_f64().max(1e-9)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// One row a text, in Markdown.
pub fn write_table(texts: &[TextOutcome], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "\n| {:<11} | {:>6} | {:>11} | {:>8} | {:>5} | {:>7} | {:>5} |",
        "text", "tokens", "t/s without", "t/s with", "ratio", "guessed", "right"
    )?;
    writeln!(
        out,
        "|-------------|-------:|------------:|---------:|------:|--------:|------:|"
    )?;
    for of in texts {
        let ratio = of.tok_s_with / of.tok_s_without.max(1e-9);
        writeln!(
            out,
            "| {:<11} | {:>6} | {:>11.2} | {:>8.2} | {ratio:>5.2} | {:>7} | {:>5} |",
            of.text, of.tokens, of.tok_s_without, of.tok_s_with, of.drafted, of.accepted
        )?;
        if !of.is_same {
            writeln!(out, "the answers of `{}` differ", of.text)?;
        }
    }
    Ok(())
}
