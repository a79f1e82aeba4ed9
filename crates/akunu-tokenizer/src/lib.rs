#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bpe;
mod charsmap;
mod cutter;
mod error;
mod json;
mod marker;
pub mod merges;
mod normalizer;
mod pattern;
mod pieces;
pub mod pretokenizer;
mod prompt;
mod search;
mod sentencepiece;
mod special;
mod spelling;
mod stream;
mod table;
mod template;
mod texts;
mod tokenizer;
pub mod tokens;
mod unigram;
pub mod vocabulary;
mod wordpiece;

/// Model files, whose metadata has vocabularies and templates.
#[doc(no_inline)]
pub use akunu_gguf as gguf;

pub use error::TokenizerError;
pub use json::TokenizerConfig;
pub use prompt::PromptPart;
pub use stream::DecodeStream;
pub use template::{ChatTemplate, Message, RenderOptions, TemplateError};
pub use tokenizer::{EncodeOptions, Tokenizer};
pub use vocabulary::{SpecialIds, Vocabulary};
