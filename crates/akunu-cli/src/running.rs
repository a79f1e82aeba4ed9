//! What the commands that run a model share: their options, loading, and printing tokens as they come.

use crate::device::DeviceArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::kv::KvArgs;
use crate::models;
use crate::progress::{self, ReadingBar};
use crate::terminal::{note, shown, warn};
use akunu::{
    EngineError, Fed, GenerateOptions, Generation, Loading, Model, ModelOptions, Sampling, Session,
    SessionOptions, Speculated, StopReason, Token, Watch,
};
use clap::Args;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Which model runs, and where.
#[derive(Args)]
pub struct ModelArgs {
    /// A GGUF file, a folder with config.json and safetensors, a name from `pull --list`, or
    /// hf:owner/repository/file.gguf
    #[arg(short, long, value_name = "MODEL", default_value = models::DEFAULT)]
    pub model: String,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub kv: KvArgs,
    /// Threads of the CPU device, at most one for each core [default: one for each core]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<usize>,
    /// Length of the context in tokens [default: what the model was trained for, at most 4096]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
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

impl Loaded {
    /// Opens a model on a device with so many threads; a terminal shows how far that is if it takes long.
    pub fn open(
        path: &Path,
        device: &DeviceArgs,
        threads: Option<usize>,
        options: ModelOptions,
    ) -> Result<Loaded, Failure> {
        let begin = Instant::now();
        let device = device.open(threads)?;
        let name = device.name();
        let device = akunu::Device::Custom(device);
        let open = |loading: &Loading| Model::open_watched(path, device, options, loading);
        let model = progress::loading(open)?;
        if let Some(conversion) = model.conversion() {
            note(conversion);
        }
        Ok(Loaded {
            model,
            device: name,
            took: begin.elapsed(),
        })
    }
}

impl ModelArgs {
    /// Opens the model on its device, without the block that guesses tokens.
    pub fn load(&self) -> Result<Loaded, Failure> {
        self.open(false)
    }

    /// The same, with the block if that is wanted.
    pub fn open(&self, with_mtp: bool) -> Result<Loaded, Failure> {
        let path = models::resolve(&self.model)?;
        models::refuse_speech(&path, "writes text")?;
        let options = ModelOptions {
            without_mtp: !with_mtp,
            ..self.kv.options()
        };
        Loaded::open(&path, &self.device, self.threads, options)
    }

    /// The size of a session.
    pub fn session(&self) -> SessionOptions {
        SessionOptions {
            context: self.ctx,
            ..SessionOptions::default()
        }
    }
}

/// Reads a prompt. Ctrl-C ends it, and a terminal shows how far it is when it takes long.
pub fn watched<T>(interrupt: &Interrupt, read: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    let bar = ReadingBar::new();
    read(&mut |reading| {
        bar.set(reading);
        interrupt.go_on()
    })
}

/// Makes a prompt the content of a session, [watched].
pub fn read_prompt(
    session: &mut Session,
    ids: &[u32],
    interrupt: &Interrupt,
) -> Result<Fed, Failure> {
    let fed = watched(interrupt, |watch| {
        session.feed_until(ids, interrupt.flag(), watch)
    });
    fed.map_err(|error| match error {
        EngineError::Cancelled { .. } => Failure::Interrupted,
        other => other.into(),
    })
}

/// Options for at most `max_tokens`, which Ctrl-C stops.
pub fn options(max_tokens: usize, sampling: Sampling, interrupt: &Interrupt) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        sampling,
        cancel: interrupt.flag().clone(),
        ..GenerateOptions::default()
    }
}

/// What a generation gave.
pub struct Answer {
    pub ids: Vec<u32>,
    /// The tokens that say how likely they were.
    pub scored: Vec<Token>,
    pub text: String,
    pub stop: StopReason,
    /// How guesses went.
    pub speculated: Speculated,
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
pub fn collect(
    generation: Generation<&mut Session>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    follow(generation, |_, text| {
        write!(out, "{}", shown(text))?;
        Ok(out.flush()?)
    })
}

/// Takes all tokens, and calls `show` for each as it comes, with the text that is complete with it. Text that was held
/// back until the end comes last, without a token.
pub fn follow(
    mut generation: Generation<&mut Session>,
    mut show: impl FnMut(Option<&Token>, &str) -> Result<(), Failure>,
) -> Result<Answer, Failure> {
    let mut answer = Answer {
        ids: Vec::new(),
        scored: Vec::new(),
        text: String::new(),
        stop: StopReason::MaxTokens,
        speculated: Speculated::default(),
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
        show(Some(&token), &token.text)?;
        if token.logprobs.is_some() {
            answer.scored.push(token);
        }
    }
    answer.rest = begin.elapsed();
    let tail = generation.tail();
    if !tail.is_empty() {
        show(None, &tail)?;
        answer.text.push_str(&tail);
    }
    answer.speculated = generation.speculated();
    answer.stop = generation.stop().unwrap_or(answer.stop);
    Ok(answer)
}

/// Warns about more tokens than the model was trained for: what it says after them makes little sense.
pub fn warn_beyond_training(what: &str, n_tokens: usize, model: &Model) {
    let trained = model.config().context_length;
    if n_tokens > trained as usize {
        warn(&format!(
            "{what} has {n_tokens} tokens, but the model was trained for {trained}: do not expect good \
             results beyond that"
        ));
    }
}
