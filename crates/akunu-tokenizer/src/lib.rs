//! Text to token ids and back, and chat templates.
//!
//! * [`Tokenizer`]: from the metadata of a GGUF file, or from a `tokenizer.json`.
//! * [`DecodeStream`]: text from tokens as they come, in whole characters.
//! * [`ChatTemplate`]: a conversation as the text that a model was trained on.
//! * [`Tokenizer::render`]: the same as [`PromptPart`]s, of which only the template writes control tokens.
//! * [`Vocabulary`]: what a GGUF file says, checked.
//!
//! `tokenizer.json` and WordPiece are pipelines of the `tokenizers` crate. The BPE of GGUF vocabularies is
//! our own: by scores (SentencePiece) because that crate cannot express it, by merges because that crate's
//! tables take several times as long to make, and a model is to load in a blink. Model files are not
//! trusted: a damaged vocabulary is an error that names the entry.
#![forbid(unsafe_code)]

mod bpe;
mod cutter;
mod error;
mod json;
mod marker;
pub mod merges;
mod pieces;
pub mod pretokenizer;
mod prompt;
mod sentencepiece;
mod special;
mod spelling;
mod stream;
mod table;
mod template;
mod texts;
mod tokenizer;
pub mod tokens;
pub mod vocabulary;
mod wordpiece;

pub use error::TokenizerError;
pub use json::TokenizerConfig;
pub use prompt::PromptPart;
pub use stream::DecodeStream;
pub use template::{ChatTemplate, Message, RenderOptions, TemplateError};
pub use tokenizer::{EncodeOptions, Tokenizer};
pub use vocabulary::{SpecialIds, Vocabulary};
