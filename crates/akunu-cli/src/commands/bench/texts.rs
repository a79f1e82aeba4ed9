//! `bench --texts`: what guessing tokens ahead saves on texts that people have.
//!
//! Each text is answered without guesses and with them, in turn.

use super::answering::{Answered, Asking, cpu_speed, speed};
use crate::failure::Failure;
use akunu::Lookup;
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
    /// How many times as many tokens a second of the processors gives with guesses, where the system tells.
    pub cpu_ratio: Option<f64>,
    /// Of the last run.
    pub drafted: u32,
    pub accepted: u32,
    /// Whether the answer was the same with and without guesses in all runs.
    pub is_same: bool,
}

/// Answers all texts.
pub fn measure(asking: &Asking) -> Result<Vec<TextOutcome>, Failure> {
    let of_text = |(text, question): (&'static str, &str)| {
        let answer = |lookup: Lookup| -> Result<Answered, Failure> {
            let model = (asking.open)()?;
            asking.answer(&model, question, asking.options(&model, lookup))
        };
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..asking.runs {
            without.push(answer(Lookup::Off)?);
            with.push(answer(Lookup::Auto)?);
        }
        let last = &with[with.len() - 1].stats;
        let cpu = cpu_speed(&without).zip(cpu_speed(&with));
        let mut all = with.iter().chain(&without);
        Ok(TextOutcome {
            text,
            tokens: last.tokens,
            tok_s_without: speed(&without),
            tok_s_with: speed(&with),
            cpu_ratio: cpu.map(|(without, with)| with / without),
            drafted: last.speculated.n_drafted(),
            accepted: last.speculated.n_accepted(),
            is_same: all.all(|answer| answer.text == with[0].text),
        })
    };
    TEXTS.into_iter().map(of_text).collect()
}

/// One row a text, in Markdown.
pub fn write_table(texts: &[TextOutcome], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "\n| {:<11} | {:>6} | {:>11} | {:>8} | {:>5} | {:>9} | {:>7} | {:>5} |",
        "text", "tokens", "t/s without", "t/s with", "ratio", "CPU ratio", "guessed", "right"
    )?;
    writeln!(
        out,
        "|-------------|-------:|------------:|---------:|------:|----------:|--------:|------:|"
    )?;
    for of in texts {
        let ratio = of.tok_s_with / of.tok_s_without.max(1e-9);
        let cpu = of.cpu_ratio.map(|ratio| format!("{ratio:.2}"));
        writeln!(
            out,
            "| {:<11} | {:>6} | {:>11.2} | {:>8.2} | {ratio:>5.2} | {:>9} | {:>7} | {:>5} |",
            of.text,
            of.tokens,
            of.tok_s_without,
            of.tok_s_with,
            cpu.unwrap_or_default(),
            of.drafted,
            of.accepted
        )?;
        if !of.is_same {
            writeln!(out, "the answers of `{}` differ", of.text)?;
        }
    }
    Ok(())
}
