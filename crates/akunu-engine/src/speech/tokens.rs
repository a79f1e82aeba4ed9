//! The tokens of a speech model that are not text.
//!
//! ```text
//! … text … <|endoftext|> <|startoftranscript|> <|en|> <|zh|> … <|translate|> <|transcribe|> <|startoflm|> <|startofprev|>
//! <|nospeech|> <|notimestamps|> <|0.00|> <|0.02|> … <|30.00|>
//! ```
//!
//! Languages stand between the start and `<|translate|>`, times after `<|notimestamps|>`, whether the vocabulary spells
//! them out or not. A model for English alone has the same tokens, and never sees those of languages and tasks.

use std::path::Path;

use akunu_tokenizer::{EncodeOptions, Tokenizer};

use crate::error::EngineError;

/// Tokens of the smallest vocabulary with several languages: one with fewer is for English alone.
const MULTILINGUAL_VOCABULARY: u32 = 51_865;

/// Seconds from one time token to the next.
pub const TIME_STEP: f64 = 0.02;

/// The ids of the tokens that are not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechTokens {
    /// `<|endoftext|>`: ends a window, and begins the ids that are no text.
    pub end: u32,
    /// `<|startoftranscript|>`.
    pub start: u32,
    /// `<|translate|>`: write English, whatever is spoken.
    pub translate: u32,
    /// `<|transcribe|>`: write what is spoken.
    pub transcribe: u32,
    /// `<|startofprev|>`: what was said before follows.
    pub previous: u32,
    /// `<|nospeech|>`, whose probability is that of a window without speech.
    pub no_speech: u32,
    /// `<|notimestamps|>`.
    pub no_times: u32,
    /// The first language.
    pub first_language: u32,
    /// The languages, as `en`, `zh`, …, in the order of their tokens; empty in a model for English alone.
    pub languages: Vec<String>,
    /// All ids are below.
    pub vocab_size: u32,
}

impl SpeechTokens {
    /// Finds them in a vocabulary.
    pub fn find(
        tokenizer: &Tokenizer,
        vocab_size: u32,
        path: &Path,
    ) -> Result<SpeechTokens, EngineError> {
        let find = |names: &[&str]| {
            let found = names.iter().find_map(|name| id_of(tokenizer, name));
            found
                .filter(|&id| id < vocab_size)
                .ok_or_else(|| EngineError::NotSpeech {
                    path: path.to_path_buf(),
                    why: format!("its vocabulary has no token `{}`", names[0]),
                })
        };
        let start = find(&["<|startoftranscript|>"])?;
        let translate = find(&["<|translate|>"])?;
        let is_multilingual = vocab_size >= MULTILINGUAL_VOCABULARY;
        let languages = (start + 1..translate).filter(|_| is_multilingual);
        let name = |id: u32| {
            let bytes = tokenizer.token_bytes(id).unwrap_or_default();
            let name = String::from_utf8_lossy(&bytes).into_owned();
            let name = name.strip_prefix("<|").and_then(|n| n.strip_suffix("|>"));
            name.unwrap_or_default().to_string()
        };
        Ok(SpeechTokens {
            end: find(&["<|endoftext|>"])?,
            start,
            translate,
            transcribe: find(&["<|transcribe|>"])?,
            previous: find(&["<|startofprev|>"])?,
            no_speech: find(&["<|nospeech|>", "<|nocaptions|>"])?,
            no_times: find(&["<|notimestamps|>"])?,
            first_language: start + 1,
            languages: languages.map(name).collect(),
            vocab_size,
        })
    }

    /// The first time: 0 s.
    pub fn first_time(&self) -> u32 {
        self.no_times + 1
    }

    /// Whether a token is a time.
    pub fn is_time(&self, id: u32) -> bool {
        id >= self.first_time()
    }

    /// The seconds of a time, since the beginning of the window.
    pub fn seconds(&self, time: u32) -> f64 {
        f64::from(time.saturating_sub(self.first_time())) * TIME_STEP
    }

    /// Whether a token is text.
    pub fn is_text(&self, id: u32) -> bool {
        id < self.end
    }

    /// The token of a language by its short name, such as `en`.
    pub fn language(&self, name: &str) -> Option<u32> {
        let at = self.languages.iter().position(|known| known == name)?;
        Some(self.first_language + at as u32)
    }

    /// Whether the model knows other languages than English.
    pub fn is_multilingual(&self) -> bool {
        !self.languages.is_empty()
    }
}

fn id_of(tokenizer: &Tokenizer, name: &str) -> Option<u32> {
    let options = EncodeOptions {
        parse_special: true,
        ..EncodeOptions::default()
    };
    match tokenizer.encode(name, options)[..] {
        [id] => Some(id),
        _ => None,
    }
}
