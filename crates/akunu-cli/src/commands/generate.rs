//! `generate`: continues a text, without a chat template.

use super::Run;
use crate::failure::Failure;
use crate::interrupt;
use crate::running::{Answer, ModelArgs, SamplingArgs, collect, options, stop_name};
use akunu_tokenizer::EncodeOptions;
use clap::Parser;
use serde_json::json;
use std::fs;
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
    /// Print one JSON object at the end instead of text as it comes
    #[arg(long)]
    json: bool,
}

impl Run for Generate {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let begin = Instant::now();
        let model = self.model.load()?;
        let loaded = begin.elapsed();
        let encode = EncodeOptions {
            add_special: true,
            parse_special: true,
        };
        let prompt_ids = model.tokenizer().encode(&self.text()?, encode)?;
        let mut session = model.session(self.model.session())?;

        let begin = Instant::now();
        session.feed(&prompt_ids)?;
        let prefilled = begin.elapsed();
        let begin = Instant::now();
        let cancel = interrupt::cancel_flag();
        let generation = session.generate(options(self.n, self.sampling.sampling(), &cancel))?;
        let answer = if self.json {
            collect(generation, &mut io::sink())?
        } else {
            collect(generation, out)?
        };
        let times = Times {
            loaded,
            prefilled,
            decoded: begin.elapsed(),
        };
        if self.json {
            self.write_json(&prompt_ids, &answer, &times, out)
        } else {
            Ok(writeln!(out)?)
        }
    }
}

/// How long the parts of a run took.
struct Times {
    loaded: Duration,
    prefilled: Duration,
    decoded: Duration,
}

impl Generate {
    fn text(&self) -> Result<String, Failure> {
        match (&self.prompt, &self.file) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(path)) => fs::read_to_string(path).map_err(|source| Failure::Prompt {
                path: path.clone(),
                source,
            }),
            (None, None) => Ok(String::new()),
        }
    }

    fn write_json(
        &self,
        prompt_ids: &[u32],
        answer: &Answer,
        times: &Times,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let rate = |n: usize, took: Duration| n as f64 / took.as_secs_f64().max(1e-9);
        let report = json!({
            "model": self.model.model,
            "device": format!("{:?}", self.model.device).to_lowercase(),
            "prompt_ids": prompt_ids,
            "ids": answer.ids,
            "text": answer.text,
            "stop": stop_name(answer.stop),
            "timings": {
                "load_ms": times.loaded.as_secs_f64() * 1e3,
                "prefill_tok_s": rate(prompt_ids.len(), times.prefilled),
                "decode_tok_s": rate(answer.ids.len(), times.decoded),
            },
        });
        serde_json::to_writer(&mut *out, &report)?;
        Ok(writeln!(out)?)
    }
}
