//! The file of `serve --config`: models with their names and settings, in TOML.
//!
//! ```toml
//! default-model = "coder"
//!
//! [[model]]
//! model = "qwen2.5-coder-1.5b"
//! name = "coder"
//! alias = ["gpt-4o"]
//! context = 16384
//! system = "Answer briefly."
//! lora = ["style.gguf:0.5"]
//! draft = "qwen2.5-coder-0.5b"
//! pin = true
//! sampling = { temperature = 0.2, top_p = 0.9 }
//! ```

use crate::adapters::{Asked, asked};
use crate::failure::Failure;
use crate::input::{KEYS, read_text};
use akunu::{MAX_DRAFT, SamplingOptions};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A file that was read.
pub struct Config {
    path: PathBuf,
    text: String,
    /// The model that answers where no other is named.
    pub default_model: Option<Spanned<String>>,
    pub models: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    default_model: Option<Spanned<String>>,
    #[serde(default)]
    model: Vec<Entry>,
}

/// A model, as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Entry {
    /// What `-m` takes.
    pub model: Spanned<String>,
    pub name: Option<Spanned<String>>,
    #[serde(default)]
    pub alias: Vec<Spanned<String>>,
    context: Option<Spanned<u32>>,
    pub system: Option<String>,
    #[serde(default)]
    lora: Vec<Spanned<String>>,
    pub draft: Option<Spanned<String>>,
    draft_tokens: Option<Spanned<u32>>,
    #[serde(default)]
    pub pin: bool,
    #[serde(default)]
    sampling: BTreeMap<String, Spanned<f64>>,
}

impl Config {
    /// Reads a file. The files that it names are opened later.
    pub fn read(path: &Path) -> Result<Config, Failure> {
        let text = read_text(path, KEYS)?;
        let read: Result<Written, _> = toml::from_str(&text);
        match read {
            Ok(written) => Ok(Config {
                path: path.to_path_buf(),
                text,
                default_model: written.default_model,
                models: written.model,
            }),
            Err(error) => Err(Failure::Config {
                path: path.to_path_buf(),
                line: line_of(&text, &error.span().unwrap_or_default()),
                why: error.message().replace('\n', "; "),
            }),
        }
    }

    /// The mistake in a value, with its line.
    pub fn wrong<T>(&self, value: &Spanned<T>, why: impl Display) -> Failure {
        Failure::Config {
            path: self.path.clone(),
            line: line_of(&self.text, &value.span()),
            why: why.to_string(),
        }
    }

    /// The length of a model's conversations.
    pub fn context(&self, entry: &Entry) -> Result<Option<u32>, Failure> {
        match &entry.context {
            Some(n) if *n.get_ref() == 0 => Err(self.wrong(n, "context must be 1 or more")),
            given => Ok(given.as_ref().map(|n| *n.get_ref())),
        }
    }

    /// How many tokens a model's draft model guesses in each step.
    pub fn draft_tokens(&self, entry: &Entry) -> Result<Option<usize>, Failure> {
        let Some(n) = &entry.draft_tokens else {
            return Ok(None);
        };
        match *n.get_ref() as usize {
            guesses @ 1..=MAX_DRAFT => Ok(Some(guesses)),
            _ => Err(self.wrong(n, format!("draft-tokens must be 1 to {MAX_DRAFT}"))),
        }
    }

    /// The adapters of a model.
    pub fn adapters(&self, entry: &Entry) -> Result<Vec<Asked>, Failure> {
        let read = |text: &Spanned<String>| {
            let wrong = |why| self.wrong(text, format!("lora: {why}"));
            let asked = asked(text.get_ref()).map_err(wrong)?;
            match asked.path.exists() {
                true => Ok(asked),
                false => Err(wrong(format!("there is no file {}", asked.path.display()))),
            }
        };
        entry.lora.iter().map(read).collect()
    }

    /// How a model's tokens are drawn where a request does not say.
    pub fn sampling(&self, entry: &Entry) -> Result<SamplingOptions, Failure> {
        let mut options = SamplingOptions::default();
        for (name, value) in &entry.sampling {
            let set = options.set(name, *value.get_ref());
            set.map_err(|error| self.wrong(value, error))?;
        }
        Ok(options)
    }
}

/// The line on which a part of a text begins, from 1.
fn line_of(text: &str, at: &Range<usize>) -> usize {
    let before = text.get(..at.start).unwrap_or(text);
    1 + before.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, text).expect("written");
        let told = |failure: Failure| {
            let told = failure.to_string();
            let parts = told.split_once("serve.toml, ");
            parts.map_or(told.clone(), |(_, rest)| rest.to_string())
        };
        let config = Config::read(&path).map_err(told)?;
        for entry in &config.models {
            config.context(entry).map_err(told)?;
            config.adapters(entry).map_err(told)?;
            config.draft_tokens(entry).map_err(told)?;
            config.sampling(entry).map_err(told)?;
        }
        Ok(config)
    }

    /// Breaks when a value does not reach the server of the model.
    #[test]
    fn a_model_has_its_settings() {
        let config = read(
            "default-model = \"coder\"\n[[model]]\nmodel = \"a.gguf\"\nalias = [\"gpt-4o\", \"x\"]\ncontext = 100\n\
             lora = [\"Cargo.toml:0.5\"]\npin = true\nsampling = { temperature = 0.2, top_k = 7 }\n[[model]]\nmodel = \"c\"\n",
        );
        let config = config.expect("a file as it should be");
        let [entry, other] = &config.models[..] else {
            panic!("two models");
        };
        let sampling = config.sampling(entry).expect("in range");
        assert_eq!((sampling.temperature, sampling.top_k), (Some(0.2), Some(7)));
        assert_eq!(config.context(entry).expect("one"), Some(100));
        assert_eq!(config.adapters(entry).expect("one").len(), 1);
        assert!(entry.pin && !other.pin && other.alias.is_empty());
    }

    /// Breaks when an error does not name its line, or when an unknown word is ignored.
    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let model = "[[model]]\nmodel = \"a\"\n";
        for (text, wanted) in [
            ("\nport = 80\n", "line 2: unknown field `port`"),
            ("[[model]]\nname = \"a\"\n", "line 1: missing field `model`"),
            ("default-model = \n", "line 1: "),
            (
                &format!("{model}\ncontext = \"long\"\n"),
                "line 4: invalid type: string \"long\", expected u32",
            ),
            (
                &format!("{model}draft-tokens = 32\n"),
                "line 3: draft-tokens must be 1 to 31",
            ),
            (
                &format!("{model}context = 0\n"),
                "line 3: context must be 1 or more",
            ),
            (
                &format!("{model}[model.sampling]\ntop_p = 0.9\ntemprature = 1\n"),
                "line 5: there is no sampling option `temprature`",
            ),
            (
                &format!("{model}sampling = {{ top_p = 7 }}\n"),
                "line 3: top_p is 7",
            ),
            (
                &format!("{model}lora = [\n  \"Cargo.toml\",\n  \"b.gguf:much\",\n]\n"),
                "line 5: lora: `much` after the last colon is not a scale",
            ),
        ] {
            let told = read(text).err().unwrap_or_default();
            assert!(told.starts_with(wanted), "{told}");
        }
    }
}
