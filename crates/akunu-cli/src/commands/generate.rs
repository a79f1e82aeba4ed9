//! `generate`: continues a text, without a chat template.

use super::Run;
use crate::failure::Failure;
use crate::interrupt;
use crate::running::{Answer, Loaded, ModelArgs, collect, options, rate, read_text, stop_name};
use crate::sampling::SamplingArgs;
use akunu_engine::Overflow;
use akunu_tokenizer::EncodeOptions;
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Continue a text as it is, without a chat template
///
/// Control tokens in the text are read as such, and the beginning of a text is marked as the model's
/// file says.
#[derive(Parser)]
#[command(name = "generate")]
pub struct Generate {
    #[command(flatten)]
    model: ModelArgs,
    /// The text to continue
    #[arg(short, long, value_name = "TEXT", required_unless_present = "file")]
    prompt: Option<String>,
    /// A file with the text to continue
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    file: Option<PathBuf>,
    /// At most this many new tokens
    #[arg(short, long, value_name = "N", default_value_t = 64)]
    n: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// What happens when the context is full
    #[arg(long, value_enum, default_value = "stop")]
    overflow: OnOverflow,
    /// Print one JSON object at the end instead of text as it comes
    #[arg(long)]
    json: bool,
}

/// What happens when the context is full.
#[derive(Clone, Copy, ValueEnum)]
enum OnOverflow {
    /// The text ends
    Stop,
    /// The older half of it is forgotten, and it goes on
    Shift,
}

impl Run for Generate {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let text = self.text()?;
        let loaded = self.model.load()?;
        let encode = EncodeOptions {
            add_special: true,
            parse_special: true,
        };
        let prompt_ids = loaded.model.tokenizer().encode(&text, encode)?;
        let mut session = loaded.model.session(self.model.session())?;

        let begin = Instant::now();
        session.feed(&prompt_ids)?;
        let prefill = begin.elapsed();
        let cancel = interrupt::cancel_flag();
        let mut options = options(self.n, self.sampling.sampling(), &cancel);
        options.overflow = match self.overflow {
            OnOverflow::Stop => Overflow::Stop,
            OnOverflow::Shift => Overflow::Shift { keep: 1 },
        };
        let generation = session.generate(options)?;
        if !self.json {
            collect(generation, out)?;
            return Ok(writeln!(out)?);
        }
        let answer = collect(generation, &mut io::sink())?;
        let report = report(&loaded, &prompt_ids, prefill, &answer);
        serde_json::to_writer(&mut *out, &report)?;
        Ok(writeln!(out)?)
    }
}

impl Generate {
    fn text(&self) -> Result<String, Failure> {
        match (&self.prompt, &self.file) {
            (None, Some(path)) => read_text(path),
            (text, _) => Ok(text.clone().unwrap_or_default()),
        }
    }
}

/// What scripts read.
fn report(loaded: &Loaded, prompt_ids: &[u32], prefill: Duration, answer: &Answer) -> Value {
    let milliseconds = |took: Duration| took.as_secs_f64() * 1e3;
    json!({
        "model": loaded.model.path(),
        "device": loaded.device,
        "prompt_ids": prompt_ids,
        "ids": answer.ids,
        "text": answer.text,
        "stop": stop_name(answer.stop),
        "timings": {
            "load_ms": milliseconds(loaded.took),
            "prefill_ms": milliseconds(prefill),
            "prefill_tok_s": rate(prompt_ids.len(), prefill),
            "first_token_ms": milliseconds(prefill + answer.first),
            "decode_ms": milliseconds(answer.rest),
            "decode_tok_s": answer.decode_rate(),
        },
    })
}
