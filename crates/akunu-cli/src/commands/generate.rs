//! `generate`: continues a text, without a chat template.

mod choices;
mod output;

use super::Run;
use crate::adapters::AdapterArgs;
use crate::failure::Failure;
use crate::guided::{GrammarArgs, SpeculationArgs};
use crate::input::{self, read_text};
use crate::interrupt::Interrupt;
use crate::limit::{Limit, limit};
use crate::loops::LoopArgs;
use crate::progress;
use crate::running::{ModelArgs, options, read_prompt, warn_beyond_training};
use crate::sampling::{ListArgs, SamplingArgs, logprobs};
use akunu::{Overflow, StopReason};
use akunu_tokenizer::EncodeOptions;
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Parser, ValueEnum};
use output::{Asked, Style};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Continue a text as it is, without a chat template
///
/// Control tokens in the text are read as such, and a token that begins texts is added if the model's file
/// asks for it.
#[derive(Parser)]
#[command(name = "generate", group = ArgGroup::new("text").required(true))]
pub struct Generate {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// The text to continue
    #[arg(short, long, value_name = "TEXT", group = "text")]
    prompt: Option<String>,
    /// A file with the text to continue; - for standard input
    #[arg(short, long, value_name = "FILE", group = "text")]
    file: Option<PathBuf>,
    /// Maximum number of new tokens; -1: until the model ends the text or the context is full
    #[arg(short, long, value_name = "N", default_value = "64", allow_negative_numbers = true, value_parser = limit)]
    n: Limit,
    /// End at this text, which is not printed; may be given several times
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,
    #[command(flatten)]
    loops: LoopArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    speculation: SpeculationArgs,
    #[command(flatten)]
    lists: ListArgs,
    /// Add the log probabilities of the new tokens, and of the N best ones, to --json or --json-lines
    #[arg(long, value_name = "N", value_parser = logprobs, requires = "for_scripts")]
    logprobs: Option<u32>,
    /// Add the log probabilities of the tokens of the prompt too, each with the N best ones, to --json; the prompt is
    /// then read twice
    #[arg(long, value_name = "N", value_parser = logprobs, requires = "json", conflicts_with_all = ["choices", "json_lines"])]
    prompt_logprobs: Option<u32>,
    /// Continue the text this many times, with consecutive seeds, and mark the one with the largest mean log
    /// probability; needs --json
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=akunu::MAX_SEQUENCES as i64), requires = "json", conflicts_with = "json_lines")]
    choices: Option<u32>,
    /// What happens when the context is full
    #[arg(long, value_enum, default_value = "stop")]
    overflow: OnOverflow,
    /// Print one JSON object at the end instead of text as it comes
    #[arg(long, group = "for_scripts")]
    json: bool,
    /// Print JSON objects, one on each line: one for each token as it comes, and a summary at the end
    #[arg(long, group = "for_scripts", conflicts_with = "json")]
    json_lines: bool,
}

/// What happens when the context is full.
#[derive(Clone, Copy, ValueEnum)]
enum OnOverflow {
    /// End the text
    Stop,
    /// Forget the older half of the text and continue
    Shift,
}

impl Run for Generate {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let text = self.text()?;
        let loaded = self.model.open(self.speculation.uses_mtp())?;
        let encode = EncodeOptions {
            add_special: true,
            parse_special: true,
            ..EncodeOptions::default()
        };
        let tokenizer = loaded.model.tokenizer();
        let prompt_ids = progress::wait("splitting the text into tokens", || {
            tokenizer.encode(&text, encode)
        });
        if prompt_ids.is_empty() {
            return Err(Failure::EmptyPrompt);
        }
        let grammar = self.grammar.grammar(&loaded.model)?;
        let speculation = self.speculation.speculation(&self.model, &loaded.model)?;
        warn_beyond_training("the prompt", prompt_ids.len(), &loaded.model);
        let mut session = loaded.model.session(self.model.session())?;
        session.set_adapters(&self.adapters.adapters(&loaded.model)?)?;

        let prompt_scores = match self.prompt_logprobs {
            Some(n) => session.score_best(&prompt_ids, 1, n as usize)?,
            None => Vec::new(),
        };
        let begin = Instant::now();
        let interrupt = Interrupt::listen();
        read_prompt(&mut session, &prompt_ids, &interrupt)?;
        let prefill = begin.elapsed();
        let sampling = self.sampling.sampling();
        let mut options = options(self.n.0, sampling, &interrupt);
        options.stop.clone_from(&self.stop);
        options.loop_window = self.loops.window(None);
        options.grammar = grammar;
        options.speculation = speculation;
        options.logit_bias = self.lists.logit_bias();
        options.dry_breakers = self.lists.dry_breakers();
        options.logprobs = self.logprobs;
        options.overflow = match self.overflow {
            OnOverflow::Stop => Overflow::Stop,
            OnOverflow::Shift => Overflow::Shift { keep: 1 },
        };
        let asked = Asked {
            loaded: &loaded,
            prompt_ids: &prompt_ids,
            prompt_scores: &prompt_scores,
            prefill,
            seed: sampling.seed,
        };
        if let Some(n) = self.choices {
            return choices::write(session, &options, n, &asked, out);
        }
        match self
            .style()
            .write(session.generate(options)?, &asked, out)?
        {
            StopReason::Cancelled => Err(Failure::CutShort),
            _ => Ok(()),
        }
    }
}

impl Generate {
    fn text(&self) -> Result<String, Failure> {
        match (&self.prompt, &self.file) {
            (None, Some(path)) => read_text(path, input::PROMPT),
            (text, _) => Ok(text.clone().unwrap_or_default()),
        }
    }

    fn style(&self) -> Style {
        match (self.json, self.json_lines) {
            (true, _) => Style::Json,
            (_, true) => Style::JsonLines,
            _ => Style::Text,
        }
    }
}
