//! What the commands that run a model share: their options, loading, and printing tokens as they come.

use crate::failure::Failure;
use crate::models;
use akunu_engine::{
    CancelFlag, GenerateOptions, Generation, Model, Sampling, SessionOptions, StopReason,
};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{ChipConfig, Device};
use clap::{Args, ValueEnum};
use std::io::Write;

/// Which device computes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DeviceName {
    /// The reference: plain Rust, one thread, slow and right by definition
    Twin,
}

/// Which model runs, and where.
#[derive(Args)]
pub struct ModelArgs {
    /// A GGUF file, a folder with config.json and safetensors, a name of `pull --list`, or
    /// hf:owner/repository/file.gguf
    #[arg(short, long, value_name = "MODEL", default_value = models::DEFAULT)]
    pub model: String,
    /// What computes
    #[arg(long, value_enum, default_value = "twin")]
    pub device: DeviceName,
    /// Tokens that the model can look back at [default: what it was trained for, at most 4096]
    #[arg(long, value_name = "N")]
    pub ctx: Option<u32>,
}

impl ModelArgs {
    /// Opens the model on its device.
    pub fn load(&self) -> Result<Model, Failure> {
        let device: Box<dyn Device> = match self.device {
            DeviceName::Twin => Box::new(TwinDevice::new(ChipConfig::m1())),
        };
        Ok(Model::load(models::resolve(&self.model)?, device)?)
    }

    /// The size of a session.
    pub fn session(&self) -> SessionOptions {
        SessionOptions {
            context: self.ctx,
            ..SessionOptions::default()
        }
    }
}

/// How tokens are chosen.
#[derive(Args)]
pub struct SamplingArgs {
    /// 0 always takes the most likely token; higher is more varied
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temp: f32,
    /// Choose among this many of the most likely tokens, at most 256; 0 for as many as possible
    #[arg(long, value_name = "K", default_value_t = 40)]
    top_k: u32,
    /// Choose among the most likely tokens whose probabilities sum to this
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    top_p: f32,
    /// Leave out tokens less likely than this share of the most likely one
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    min_p: f32,
    /// Above 1 makes the last 64 tokens less likely
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    repeat_penalty: f32,
    /// The same seed gives the same answer
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl SamplingArgs {
    /// As the engine takes it.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            seed: self.seed,
            ..Sampling::greedy()
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
}

/// Takes all tokens, and shows each as it comes.
pub fn collect(mut generation: Generation, out: &mut dyn Write) -> Result<Answer, Failure> {
    let mut answer = Answer {
        ids: Vec::new(),
        text: String::new(),
        stop: StopReason::MaxTokens,
    };
    for token in generation.by_ref() {
        let token = token?;
        answer.ids.push(token.id);
        answer.text.push_str(&token.text);
        write!(out, "{}", token.text)?;
        out.flush()?;
    }
    let tail = generation.tail();
    write!(out, "{tail}")?;
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
    }
}
