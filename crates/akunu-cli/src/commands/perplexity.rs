//! `perplexity`: how surprised a model is by a text. Lower is better.
//!
//! The method is llama.cpp's, so that the numbers can be compared. The text is cut into chunks of ctx
//! tokens; what is left over is not used. Each chunk is read from an empty cache, its first token
//! replaced by the one that begins a text where the model has such. The first half only gives
//! context; with n scored tokens in all,
//!
//! ```text
//! score i        = ln p(token i | those before it in its chunk)
//! m              = -1/n * sum of the scores
//! perplexity     = exp(m)
//! s²             = 1/(n-1) * sum (-score i - m)²
//! standard error = exp(m) * s / sqrt(n)
//! ```
//!
//! s / sqrt(n) is the standard error of m where the tokens are independent; a small change of m changes exp(m) by
//! exp(m) times as much. Most of the error comes from the choice of the text, so two models or formats are better compared
//! token by token on the same text: by the mean of the differences of their scores, and the s / sqrt(n) of these.
//! `--json --scores` gives the scores.

use super::Run;
use crate::chunks::chunks;
use crate::failure::Failure;
use crate::input::{self, read_text};
use crate::interrupt::Interrupt;
use crate::progress::{self, Counts};
use crate::running::{Loaded, ModelArgs, rate, warn_beyond_training};
use akunu::{EngineError, Session, SessionOptions};
use clap::Parser;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// The context of chunks when none is given.
const DEFAULT_CONTEXT: u32 = 512;
/// The smallest of which something is scored.
const MIN_CONTEXT: u32 = 3;

/// Measure how well a model predicts a text
///
/// Uses llama.cpp's method: the text is cut into chunks of --ctx tokens (512 by default), and the second half of each is
/// scored. The standard error comes after ±. Most of it comes from the choice of the text; to compare two models or formats
/// on the same text, use the differences of their --scores.
#[derive(Parser)]
#[command(
    name = "perplexity",
    mut_arg("ctx", |ctx| ctx.help("Tokens of a chunk [default: 512]"))
)]
pub struct Perplexity {
    #[command(flatten)]
    model: ModelArgs,
    /// The text; - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// With --json: also print the natural logarithm of the probability of each scored token
    #[arg(long, requires = "json")]
    scores: bool,
}

impl Run for Perplexity {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let text = read_text(&self.file, input::CORPUS)?;
        let context = self.model.ctx.unwrap_or(DEFAULT_CONTEXT);
        let loaded = self.model.load()?;
        if context < MIN_CONTEXT {
            return Err(Failure::TooSmallToScore(context));
        }
        warn_beyond_training("a chunk", context as usize, &loaded.model);
        let chunks = progress::wait("splitting the text into tokens", || {
            chunks(loaded.model.tokenizer(), &text, context)
        })?;
        let mut session = loaded.model.session(SessionOptions {
            context: Some(context),
            ..SessionOptions::default()
        })?;
        let begin = Instant::now();
        let scores = score(&mut session, &chunks)?;
        let report = Report {
            n_chunks: chunks.len(),
            context,
            speed: rate(chunks.len() * context as usize, begin.elapsed()),
            scores,
        };
        match self.json {
            true => report.write_json(&loaded, self.scores, out),
            false => report.write_text(out),
        }
    }
}

/// Scores the second half of each chunk; a terminal shows the estimate so far.
fn score(session: &mut Session, chunks: &[Vec<u32>]) -> Result<Scores, Failure> {
    let interrupt = Interrupt::listen();
    let bar = progress::bar(chunks.len() as u64, Counts::Things("chunks"));
    let mut scores = Scores::default();
    for chunk in chunks {
        let from = chunk.len() / 2 + 1;
        let logs = session.score_watched(chunk, from, &mut |_| interrupt.go_on());
        scores.add(&logs.map_err(|error| match error {
            EngineError::Cancelled { .. } => Failure::Interrupted,
            other => other.into(),
        })?);
        bar.set_message(format!("perplexity {:.4}", scores.perplexity()));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(scores)
}

/// The scored tokens and their sums.
#[derive(Default)]
struct Scores {
    /// Natural logarithms of probabilities, in the order of the text.
    logs: Vec<f32>,
    sum: f64,
    squares: f64,
}

impl Scores {
    fn add(&mut self, logs: &[f32]) {
        self.logs.extend(logs);
        for &log in logs {
            let log = f64::from(log);
            self.sum -= log;
            self.squares += log * log;
        }
    }

    fn n(&self) -> usize {
        self.logs.len()
    }

    fn mean(&self) -> f64 {
        self.sum / self.n().max(1) as f64
    }

    fn perplexity(&self) -> f64 {
        self.mean().exp()
    }

    /// The standard error of the perplexity; 0 of a single token.
    fn standard_error(&self) -> f64 {
        let n = self.n().max(1) as f64;
        // This is s² (n - 1) / n, so s² / n is this over n - 1.
        let variance = (self.squares / n - self.mean().powi(2)).max(0.0);
        (variance / (n - 1.0).max(1.0)).sqrt() * self.perplexity()
    }
}

/// What is told at the end.
struct Report {
    n_chunks: usize,
    context: u32,
    /// Tokens a second, the first halves included.
    speed: f64,
    scores: Scores,
}

impl Report {
    fn write_text(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (perplexity, error) = (self.scores.perplexity(), self.scores.standard_error());
        Ok(writeln!(
            out,
            "perplexity {perplexity:.4} ± {error:.4} ({} tokens scored in {} chunks of {}, {:.0} \
             tokens a second)",
            self.scores.n(),
            self.n_chunks,
            self.context,
            self.speed
        )?)
    }

    fn write_json(
        &self,
        loaded: &Loaded,
        with_scores: bool,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut report = json!({
            "model": loaded.model.path(),
            "device": loaded.device,
            "ctx": self.context,
            "chunks": self.n_chunks,
            "scored": self.scores.n(),
            "perplexity": self.scores.perplexity(),
            "standard_error": self.scores.standard_error(),
            "tok_s": self.speed,
        });
        if with_scores {
            report["scores"] = json!(self.scores.logs);
        }
        serde_json::to_writer(&mut *out, &report)?;
        Ok(writeln!(out)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four tokens of probability 1/8 and 1/2: the geometric mean of 8 and 2 is 4.
    #[test]
    fn the_perplexity_is_the_geometric_mean_of_the_odds() {
        let mut scores = Scores::default();
        scores.add(&[0.125f32.ln(), 0.5f32.ln()]);
        scores.add(&[0.125f32.ln(), 0.5f32.ln()]);
        assert!((scores.perplexity() - 4.0).abs() < 1e-6);
        // Logs are ln 4 ± ln 2: the variance is ln² 2, over n - 1 = 3.
        let expected = 2f64.ln() / 3f64.sqrt() * 4.0;
        assert!((scores.standard_error() - expected).abs() < 1e-6);
    }

    /// The same odds four times as often have nearly half the error: the sum of squares is four times as large, n (n - 1)
    /// sixteen times. Fails when the error does not shrink with the number of tokens, or is not taken times the perplexity.
    #[test]
    fn the_standard_error_shrinks_with_the_number_of_tokens() {
        let error = |n_tokens: usize, share: f32| {
            let mut scores = Scores::default();
            let probabilities = [0.5 * share, 0.25 * share];
            scores.add(&probabilities.map(f32::ln).repeat(n_tokens / 2));
            scores.standard_error()
        };
        let expected = (99.0f64 / 399.0).sqrt();
        assert!((error(400, 1.0) / error(100, 1.0) - expected).abs() < 1e-6);
        // A tenth of the probabilities: the logs move by ln 10 and spread no wider, and the perplexity is ten times as large.
        assert!((error(100, 0.1) / error(100, 1.0) - 10.0).abs() < 1e-5);
    }

    /// Fails when tokens of the same odds have an error, or a single token one that is not a number.
    #[test]
    fn without_spread_there_is_no_error() {
        let mut scores = Scores::default();
        scores.add(&[-1.5]);
        assert_eq!(scores.standard_error(), 0.0);
        scores.add(&[-1.5; 7]);
        assert_eq!(scores.standard_error(), 0.0);
    }
}
