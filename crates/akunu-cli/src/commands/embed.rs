//! `embed`: texts as vectors, in JSON or as a NumPy array.

mod output;

use super::Run;
use crate::device::DeviceArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::lines;
use crate::models;
use crate::progress::{self, Counts};
use crate::terminal::warn;
use akunu::{EmbedOptions, Embedder, Embedding};
use clap::Parser;
use std::io::Write;
use std::path::PathBuf;

use self::output::{Format, Output};

/// Texts that are computed between two looks at Ctrl-C and two steps of the progress bar.
const BATCH: usize = 64;

/// Turn texts into vectors: similar meanings have a dot product near 1
///
/// Each argument is a text; without arguments, each line of --file or of standard input is one. The output is one line of
/// JSON for each text, {"text", "embedding", "tokens"}, or with --npy FILE a NumPy array of f32, (texts, dimensions).
#[derive(Parser)]
#[command(name = "embed")]
pub struct Embed {
    /// The texts
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// A file with a text in each line; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "texts")]
    file: Option<PathBuf>,
    /// A folder with config.json and safetensors, a GGUF file, a name from `pull --list`, or
    /// hf:owner/repository/file.gguf
    #[arg(short, long, value_name = "MODEL", default_value = models::DEFAULT_EMBEDDER)]
    model: String,
    #[command(flatten)]
    device: DeviceArgs,
    /// Threads of the CPU device, at most one for each core [default: one for each core]
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
    /// Keep only the first N numbers of each vector, made length 1 again
    #[arg(short, long, value_name = "N")]
    dimensions: Option<usize>,
    /// Fail on a text that is longer than the model can read, instead of cutting it
    #[arg(long)]
    strict: bool,
    /// Write a NumPy array to this file instead of JSON to standard output
    #[arg(long, value_name = "FILE")]
    npy: Option<PathBuf>,
}

impl Run for Embed {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let texts = if self.texts.is_empty() {
            lines::read(self.file.as_deref())?
        } else {
            lines::checked(self.texts)?
        };
        let path = models::resolve(&self.model)?;
        models::refuse_speech(&path, "makes embeddings")?;
        let device = self.device.open(self.threads)?;
        let embedder = Embedder::open_on(path, akunu::Device::Custom(device))?;
        let options = EmbedOptions {
            dimensions: self.dimensions,
            strict: self.strict,
            ..EmbedOptions::default()
        };
        let width = self.dimensions.unwrap_or(embedder.dimensions());
        let format = match &self.npy {
            Some(path) => Format::Npy(path),
            None => Format::Json,
        };
        let mut output = Output::new(format, (texts.len(), width), out)?;
        let interrupt = Interrupt::listen();
        let bar = progress::bar(texts.len() as u64, Counts::Things("texts"));
        let mut n_cut = 0;
        for (at, batch) in texts.chunks(BATCH).enumerate() {
            interrupt.check()?;
            let first = at * BATCH;
            let made = embedder.embed_with(batch, options);
            let made = made.map_err(|error| lines::of_batch(error, first))?;
            n_cut += made.iter().filter(|made| made.n_cut > 0).count();
            write(&mut output, batch, &made)?;
            bar.set_position((first + batch.len()) as u64);
        }
        output.finish()?;
        bar.finish_and_clear();
        warn_of_cuts(n_cut, embedder.max_tokens());
        Ok(())
    }
}

fn write(output: &mut Output, texts: &[String], made: &[Embedding]) -> Result<(), Failure> {
    for (text, embedding) in texts.iter().zip(made) {
        output.write(text, embedding)?;
    }
    Ok(())
}

/// Says how many texts were cut.
pub fn warn_of_cuts(n_cut: usize, max_tokens: usize) {
    if n_cut > 0 {
        let texts = if n_cut == 1 { "text was" } else { "texts were" };
        warn(&format!(
            "{n_cut} {texts} cut: the model reads the first {max_tokens} tokens; with --strict this is an error"
        ));
    }
}
