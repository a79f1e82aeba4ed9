//! `bench --texts`: what it costs that an answer has a given form.
//!
//! One question is answered freely and by a JSON schema, in turn and without guesses. A schema makes each step wait for its
//! mask, and saves the choice of tokens that only one text allows.

use super::answering::{Answered, Asking, cpu_speed, quantile, speed};
use crate::failure::Failure;
use akunu::{ChatOptions, Grammar, Lookup, Model};
use akunu_tokenizer::EncodeOptions;
use serde::Serialize;
use std::io::Write;
use std::time::Instant;

const QUESTION: &str = "List the planets of the solar system in JSON, with the name, whether it is a gas giant, the number \
    of moons, and one sentence about it.";

const SCHEMA: &str = r#"{
    "type": "array", "minItems": 8, "maxItems": 8,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 10},
            "is_gas_giant": {"type": "boolean"},
            "moons": {"type": "integer", "minimum": 0, "maximum": 999},
            "sentence": {"type": "string", "minLength": 10, "maxLength": 120}
        },
        "required": ["name", "is_gas_giant", "moons", "sentence"],
        "additionalProperties": false
    }
}"#;

/// How answers of a form went beside free ones.
#[derive(Serialize)]
pub struct FormOutcome {
    /// Tokens of the answers.
    pub tokens_free: usize,
    pub tokens_formed: usize,
    /// Medians of the runs.
    pub tok_s_free: f64,
    pub tok_s_formed: f64,
    /// How many times as many tokens a second of the processors gives with the form, where the system tells.
    pub cpu_ratio: Option<f64>,
    /// Time to compute which tokens may come next: the median and the 99th percentile over the answer.
    pub mask_us_p50: f64,
    pub mask_us_p99: f64,
}

/// Answers the question freely and by the schema.
pub fn measure(asking: &Asking) -> Result<FormOutcome, Failure> {
    let (mut free, mut formed, mut masks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..asking.runs {
        let model = (asking.open)()?;
        let options = asking.options(&model, Lookup::Off);
        free.push(asking.answer(&model, QUESTION, options)?);
        let model = (asking.open)()?;
        let grammar = Grammar::json_schema(&model, SCHEMA)?;
        let options = ChatOptions {
            grammar: Some(grammar.clone()),
            ..asking.options(&model, Lookup::Off)
        };
        let answer = asking.answer(&model, QUESTION, options)?;
        masks.extend(mask_times(&model, &grammar, &answer.text)?);
        formed.push(answer);
    }
    let tokens = |answers: &[Answered]| answers.last().map_or(0, |answer| answer.stats.tokens);
    let cpu = cpu_speed(&free).zip(cpu_speed(&formed));
    let of_masks = |share| quantile(masks.iter().copied(), share).unwrap_or(0.0);
    Ok(FormOutcome {
        tokens_free: tokens(&free),
        tokens_formed: tokens(&formed),
        tok_s_free: speed(&free),
        tok_s_formed: speed(&formed),
        cpu_ratio: cpu.map(|(free, formed)| formed / free),
        mask_us_p50: of_masks(0.5),
        mask_us_p99: of_masks(0.99),
    })
}

/// Microseconds for each mask along a text.
fn mask_times(model: &Model, grammar: &Grammar, text: &str) -> Result<Vec<f64>, Failure> {
    let options = EncodeOptions::default();
    let mut walk = grammar.walk();
    let mut times = Vec::new();
    for token in model.tokenizer().encode(text, options) {
        let begin = Instant::now();
        walk.allowed()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        walk.take(&[token])?;
    }
    Ok(times)
}

impl FormOutcome {
    /// One row, in Markdown.
    pub fn write_table(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let ratio = self.tok_s_formed / self.tok_s_free.max(1e-9);
        let cpu = self.cpu_ratio.map(|ratio| format!("{ratio:.2}"));
        writeln!(
            out,
            "\n| {:<11} | {:>11} | {:>8} | {:>7} | {:>5} | {:>9} | {:>11} | {:>11} |",
            "tokens free",
            "by a schema",
            "t/s free",
            "t/s",
            "ratio",
            "CPU ratio",
            "mask p50",
            "p99"
        )?;
        writeln!(
            out,
            "|------------:|------------:|---------:|--------:|------:|----------:|------------:|------------:|"
        )?;
        writeln!(
            out,
            "| {:>11} | {:>11} | {:>8.2} | {:>7.2} | {ratio:>5.2} | {:>9} | {:>8.1} µs | {:>8.1} µs |",
            self.tokens_free,
            self.tokens_formed,
            self.tok_s_free,
            self.tok_s_formed,
            cpu.unwrap_or_default(),
            self.mask_us_p50,
            self.mask_us_p99
        )?;
        Ok(())
    }
}
