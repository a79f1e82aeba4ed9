//! The options that say what an answer must look like, and how tokens are guessed ahead.

use crate::failure::Failure;
use crate::input::read_text;
use crate::models;
use crate::running::ModelArgs;
use akunu::{DraftModel, Grammar, GrammarError, Lookup, Model, Mtp, Speculated, Speculation};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::path::Path;

/// What an answer must look like.
#[derive(Args)]
pub struct GrammarArgs {
    /// Answer in JSON that matches this JSON schema: a file, or the schema itself; {} allows any JSON
    #[arg(long, value_name = "FILE|TEXT", group = "grammar_kind", value_parser = NonEmptyStringValueParser::new())]
    json_schema: Option<String>,
    /// Answer in the form of this grammar, in Lark or llama.cpp's GBNF: a file, or the grammar itself
    #[arg(long, value_name = "FILE|TEXT", group = "grammar_kind", value_parser = NonEmptyStringValueParser::new())]
    grammar: Option<String>,
    /// Answer with a text that this regular expression matches as a whole
    #[arg(long, value_name = "PATTERN", group = "grammar_kind")]
    regex: Option<String>,
    /// Answer with one of these texts, separated by commas
    #[arg(
        long,
        value_name = "A,B,…",
        value_delimiter = ',',
        group = "grammar_kind"
    )]
    choice: Vec<String>,
    /// Apply the form only after this text, such as `</think>`; until then the answer is free
    #[arg(long, value_name = "TEXT", requires = "grammar_kind")]
    grammar_after: Option<String>,
}

impl GrammarArgs {
    /// The grammar that was asked for.
    pub fn grammar(&self, model: &Model) -> Result<Option<Grammar>, Failure> {
        let grammar = if let Some(schema) = &self.json_schema {
            // A boolean is a schema too, and what else is JSON is told to be none.
            let is_json = serde_json::from_str::<Value>(schema).is_ok();
            let is_file = Path::new(schema).exists();
            let given = Given {
                text: schema,
                is_itself: schema.trim_start().starts_with('{') || (is_json && !is_file),
                kind: "a JSON schema, which begins with {",
            };
            given.compile(|text| Grammar::json_schema(model, text))?
        } else if let Some(grammar) = &self.grammar {
            let given = Given {
                text: grammar,
                is_itself: grammar.contains(':') && !Path::new(grammar).exists(),
                kind: "a grammar, whose rules have colons",
            };
            given.compile(|text| Grammar::context_free(model, text))?
        } else if let Some(pattern) = &self.regex {
            Grammar::regex(model, pattern)?
        } else if !self.choice.is_empty() {
            Grammar::choice(model, &self.choice)?
        } else {
            return Ok(None);
        };
        Ok(Some(match &self.grammar_after {
            Some(text) => grammar.starting_after(text),
            None => grammar,
        }))
    }
}

/// A schema or grammar, or the name of a file that holds it.
struct Given<'a> {
    text: &'a str,
    /// Whether it is not the name of a file.
    is_itself: bool,
    /// What it would be otherwise.
    kind: &'static str,
}

impl Given<'_> {
    /// Compiles it, or what its file holds; errors then name the file.
    fn compile(
        &self,
        compile: impl Fn(&str) -> Result<Grammar, GrammarError>,
    ) -> Result<Grammar, Failure> {
        if self.is_itself {
            return Ok(compile(self.text)?);
        }
        let path = Path::new(self.text);
        if !path.exists() && path != Path::new("-") {
            return Err(Failure::NeitherFileNor {
                given: beginning(self.text),
                kind: self.kind,
            });
        }
        let text = read_text(path, Grammar::MAX_TEXT as u64)?;
        compile(&text).map_err(|error| Failure::GrammarFile {
            path: path.to_path_buf(),
            error,
        })
    }
}

/// The text on one line, or how it begins.
fn beginning(text: &str) -> String {
    const MAX: usize = 80;
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// What `--lookup` takes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LookupName {
    /// Whenever the text has something to guess from
    On,
    /// Never
    Off,
    /// While it makes answers faster
    Auto,
}

impl From<LookupName> for Lookup {
    fn from(name: LookupName) -> Lookup {
        match name {
            LookupName::On => Lookup::On,
            LookupName::Off => Lookup::Off,
            LookupName::Auto => Lookup::Auto,
        }
    }
}

/// What `--mtp` takes: `auto`, `off`, or a number of tokens.
pub fn mtp(text: &str) -> Result<Mtp, String> {
    match (text, text.parse::<usize>()) {
        ("auto", _) => Ok(Mtp::Auto),
        ("off", _) => Ok(Mtp::Off),
        (_, Ok(n @ 1..=akunu::MAX_DRAFT)) => Ok(Mtp::Always(n)),
        _ => Err(format!(
            "it must be auto, off, or a number of tokens from 1 to {}",
            akunu::MAX_DRAFT
        )),
    }
}

/// How tokens are guessed ahead. The answer is the same with and without.
#[derive(Args)]
pub struct SpeculationArgs {
    /// Guess tokens from what followed the same tokens before, and check several at once
    #[arg(long, value_enum, default_value = "auto")]
    lookup: LookupName,
    /// Let a smaller model with the same vocabulary guess tokens: a file, or a name from `pull --list`
    #[arg(long, value_name = "MODEL")]
    draft: Option<String>,
    /// Guess this many tokens with the draft model in every step, 1 to 31 [default: as many as save time]
    #[arg(long, value_name = "N", requires = "draft",
        value_parser = clap::value_parser!(u32).range(1..=akunu::MAX_DRAFT as i64))]
    draft_tokens: Option<u32>,
    /// Guess tokens with the model's own block for multi-token prediction (MTP), if its file has one: auto for as many as save time,
    /// off, or a number of tokens
    #[arg(long, value_name = "auto|off|N", default_value = "auto", value_parser = mtp)]
    mtp: Mtp,
}

impl SpeculationArgs {
    /// How tokens are guessed for a model; a draft model runs on the same kind of device.
    pub fn speculation(&self, args: &ModelArgs, model: &Model) -> Result<Speculation, Failure> {
        let draft = match &self.draft {
            Some(name) => {
                let device = akunu::Device::Custom(args.device.open(args.threads)?);
                let draft = Model::open_on(models::resolve(name)?, device)?;
                Some(DraftModel::new(model, &draft)?)
            }
            None => None,
        };
        Ok(Speculation {
            lookup: self.lookup.into(),
            draft,
            draft_tokens: self.draft_tokens.map(|n| n as usize),
            mtp: self.mtp,
            ..Speculation::default()
        })
    }

    /// Whether the model needs its block for multi-token prediction.
    pub fn uses_mtp(&self) -> bool {
        self.mtp != Mtp::Off
    }
}

/// How guesses went, as scripts read it: by place, up to the last that was used.
pub fn speculated_json(speculated: &Speculated) -> Value {
    let used = speculated.drafted.iter().take_while(|n| **n > 0).count();
    json!({
        "steps": speculated.steps,
        "drafted": speculated.n_drafted(),
        "accepted": speculated.n_accepted(),
        "drafted_by_position": &speculated.drafted[..used],
        "accepted_by_position": &speculated.accepted[..used],
        "branched": speculated.branched,
        "branches_accepted": speculated.branches_accepted,
    })
}
