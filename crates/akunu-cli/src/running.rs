//! What the commands that run a model share: their options, loading, and printing tokens as they come.

use crate::device::DeviceArgs;
use crate::failure::Failure;
use crate::models;
use crate::terminal::shown;
use akunu_engine::{
    CancelFlag, GenerateOptions, Generation, Model, Sampling, SessionOptions, StopReason,
};
use clap::Args;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Which model runs, and where.
#[derive(Args)]
pub struct ModelArgs {
    /// A GGUF file, a folder with config.json and safetensors, a name of `pull --list`, or
    /// hf:owner/repository/file.gguf
    #[arg(short, long, value_name = "MODEL", default_value = models::DEFAULT)]
    pub model: String,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Threads of the CPU device [default: one for each core]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<usize>,
    /// Tokens that the model can look back at [default: what it was trained for, at most 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ctx: Option<u32>,
}

/// A model, ready, and what it took to get there.
pub struct Loaded {
    pub model: Model,
    /// The device's name.
    pub device: &'static str,
    /// Opening the file and binding its weights; not the download.
    pub took: Duration,
}

impl ModelArgs {
    /// Opens the model on its device.
    pub fn load(&self) -> Result<Loaded, Failure> {
        let path = models::resolve(&self.model)?;
        let begin = Instant::now();
        let device = self.device.open(self.threads)?;
        let name = device.name();
        Ok(Loaded {
            model: Model::load(path, device)?,
            device: name,
            took: begin.elapsed(),
        })
    }

    /// The size of a session.
    pub fn session(&self) -> SessionOptions {
        SessionOptions {
            context: self.ctx,
            ..SessionOptions::default()
        }
    }
}

/// Options for at most `max_tokens`, which Ctrl-C stops.
pub fn options(max_tokens: usize, sampling: Sampling, cancel: &CancelFlag) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        sampling,
        cancel: cancel.clone(),
        ..GenerateOptions::default()
    }
}

/// What a generation gave.
pub struct Answer {
    pub ids: Vec<u32>,
    pub text: String,
    pub stop: StopReason,
    /// From the last token of the prompt to the first of the answer.
    pub first: Duration,
    /// From there to the end.
    pub rest: Duration,
}

impl Answer {
    /// Tokens a second, the first one apart: that is chosen from what the prompt gave.
    pub fn decode_rate(&self) -> f64 {
        rate(self.ids.len().saturating_sub(1), self.rest)
    }
}

/// How often a second; 0 when it did not happen.
pub fn rate(n: usize, took: Duration) -> f64 {
    match n {
        0 => 0.0,
        n => n as f64 / took.as_secs_f64().max(1e-9),
    }
}

/// Takes all tokens, and shows each as it comes.
pub fn collect(mut generation: Generation, out: &mut dyn Write) -> Result<Answer, Failure> {
    let mut answer = Answer {
        ids: Vec::new(),
        text: String::new(),
        stop: StopReason::MaxTokens,
        first: Duration::ZERO,
        rest: Duration::ZERO,
    };
    let mut begin = Instant::now();
    for token in generation.by_ref() {
        let token = token?;
        if answer.ids.is_empty() {
            answer.first = begin.elapsed();
            begin = Instant::now();
        }
        answer.ids.push(token.id);
        answer.text.push_str(&token.text);
        write!(out, "{}", shown(&token.text))?;
        out.flush()?;
    }
    answer.rest = begin.elapsed();
    let tail = generation.tail();
    write!(out, "{}", shown(&tail))?;
    out.flush()?;
    answer.text.push_str(&tail);
    answer.stop = generation.stop().unwrap_or(answer.stop);
    Ok(answer)
}

/// The reason as scripts read it.
pub fn stop_name(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndToken => "end",
        StopReason::StopText => "stop",
        StopReason::MaxTokens => "length",
        StopReason::ContextFull => "context",
        StopReason::Cancelled => "cancelled",
        StopReason::Failed => "error",
    }
}

/// A text file as a whole.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|source| Failure::Read {
        path: path.to_path_buf(),
        source,
    })
}
