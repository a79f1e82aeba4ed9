//! Tokenizers from the files beside a safetensors model: `tokenizer.json` and `tokenizer_config.json`.
//!
//! The package `tokenizers` reads the former and encodes text. Ours are the limits that come first, the ids of tokens with a
//! meaning, and the bytes of each token.

mod decoder;
mod encoder;
mod file;
mod limits;
mod parts;

use crate::error::{TokenizerError, printable};
use crate::special;
use crate::spelling::Spelling;
use crate::tokenizer::{Encoder, Tokenizer};
use crate::vocabulary::SpecialIds;
use decoder::Decoder;
pub(crate) use encoder::JsonEncoder;
use file::File;
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

/// The most bytes of a file that are read. Gemma 3's `tokenizer.json` has 33 million.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// What `tokenizer_config.json` adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenizerConfig {
    /// Text of the token that begins a sequence.
    pub bos_token: Option<String>,
    /// Text of the token that ends a sequence.
    pub eos_token: Option<String>,
    /// The chat template.
    pub chat_template: Option<String>,
}

impl TokenizerConfig {
    /// Reads `tokenizer_config.json`, and `chat_template.jinja` beside it where there is one. A folder
    /// without either gives an empty configuration.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<TokenizerConfig, TokenizerError> {
        let path = folder.as_ref().join("tokenizer_config.json");
        let mut config = match path.exists() {
            true => TokenizerConfig::parse(&read(&path)?, &path)?,
            false => TokenizerConfig::default(),
        };
        let template = folder.as_ref().join("chat_template.jinja");
        if template.exists() {
            let text = String::from_utf8(read(&template)?);
            let text = text.map_err(|_| json_error(&template, "is not UTF-8"))?;
            config.chat_template = Some(text);
        }
        Ok(config)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<TokenizerConfig, TokenizerError> {
        let json: Value = serde_json::from_slice(bytes).map_err(|error| json_error(path, error))?;
        Ok(TokenizerConfig {
            bos_token: token_text(json.get("bos_token")),
            eos_token: token_text(json.get("eos_token")),
            chat_template: default_template(json.get("chat_template")),
        })
    }
}

/// A token is written as its text, or as an object with its text in `content`.
fn token_text(value: Option<&Value>) -> Option<String> {
    let value = value?;
    let text = value.as_str().or_else(|| value.get("content")?.as_str());
    text.map(str::to_string)
}

/// One template, or a list of named ones, of which we take `default`.
fn default_template(value: Option<&Value>) -> Option<String> {
    let text = match value? {
        Value::String(text) => Some(text.as_str()),
        Value::Array(named) => named
            .iter()
            .find(|entry| entry.get("name").and_then(Value::as_str) == Some("default"))
            .and_then(|entry| entry.get("template")?.as_str()),
        _ => None,
    };
    text.map(str::to_string)
}

impl Tokenizer {
    /// Reads a `tokenizer.json`, and the `tokenizer_config.json` beside it where there is one.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Tokenizer, TokenizerError> {
        let path = path.as_ref();
        let bytes = read(path)?;
        let config = TokenizerConfig::from_folder(path.parent().unwrap_or(Path::new("")))?;
        Tokenizer::from_json(&bytes, &config, path)
    }

    /// Parses the text of a `tokenizer.json`; `path` is for error messages.
    pub fn from_json(
        bytes: &[u8],
        config: &TokenizerConfig,
        path: &Path,
    ) -> Result<Tokenizer, TokenizerError> {
        Tokenizer::parse(bytes, config).map_err(|reason| json_error(path, reason))
    }

    fn parse(bytes: &[u8], config: &TokenizerConfig) -> Result<Tokenizer, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| format!("is not UTF-8: {error}"))?;
        limits::check_size(bytes)?;
        let mut file: File<'_> =
            serde_json::from_str(text).map_err(|error| format!("is not a tokenizer: {error}"))?;
        // A token that ends answers is a control token, even where the file calls it text.
        for token in &mut file.added_tokens {
            token.special |= special::END_TEXTS.contains(&token.content.as_str());
        }
        let texts = file.check()?;
        let decoder = Decoder::new(file.decoder.as_ref())?;
        let encoder = JsonEncoder::new(text, &file, texts.len())?;
        let special = special_ids(config, |text| encoder.id_of(text));
        Ok(Tokenizer {
            pieces: decoder.spell(&texts, &file.added_tokens),
            special,
            end_ids: match decoder.spelling {
                Spelling::Words => Vec::new(),
                _ => special::end_of_generation(&special, |text| encoder.id_of(text)),
            },
            strips_first_space: decoder.strips_first_space,
            encoder: Encoder::Json(Box::new(encoder)),
            controls: OnceLock::new(),
        })
    }
}

fn special_ids(config: &TokenizerConfig, id_of: impl Fn(&str) -> Option<u32> + Copy) -> SpecialIds {
    let named = |text: &Option<String>| id_of(text.as_deref()?);
    SpecialIds {
        bos: named(&config.bos_token).or_else(|| id_of("[CLS]")),
        eos: named(&config.eos_token),
        eot: special::end_of_turn(id_of),
        unk: id_of("<unk>").or_else(|| id_of("[UNK]")),
        sep: id_of("[SEP]"),
        pad: id_of("<pad>").or_else(|| id_of("[PAD]")),
        mask: id_of("[MASK]").or_else(|| id_of("<mask>")),
        ..SpecialIds::default()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TokenizerError> {
    let io_error = |source| TokenizerError::Io {
        path: path.to_path_buf(),
        source,
    };
    let too_large = || TokenizerError::TooLarge {
        path: path.to_path_buf(),
        limit: MAX_FILE_BYTES,
    };
    let file = std::fs::File::open(path).map_err(io_error)?;
    if file.metadata().map_err(io_error)?.len() > MAX_FILE_BYTES {
        return Err(too_large());
    }
    // A pipe has no length.
    let mut bytes = Vec::new();
    let mut limited = file.take(MAX_FILE_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(io_error)?;
    match bytes.len() as u64 > MAX_FILE_BYTES {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

fn json_error(path: &Path, reason: impl std::fmt::Display) -> TokenizerError {
    TokenizerError::Json {
        path: path.to_path_buf(),
        reason: printable(&reason.to_string()),
    }
}
