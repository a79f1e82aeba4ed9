//! Text to token ids and back, and chat templates.
//!
//! * [`Tokenizer`]: from the metadata of a GGUF file, or from a `tokenizer.json`.
//! * [`DecodeStream`]: text from tokens as they come, in whole characters.
//! * [`ChatTemplate`]: a conversation as the text that a model was trained on.
//! * [`Tokenizer::render`]: the same as [`PromptPart`]s, of which only the template writes control tokens.
//! * [`Vocabulary`]: what a GGUF file says, checked.
//!
//! The encoders are our own: BPE by merges and by scores, and WordPiece. The `tokenizers` crate is what they are tested
//! against; as a dependency it would take a quarter of the time in which the whole program is built, and its tables
//! of strings most of the time in which a model loads. Model files are not trusted: a damaged vocabulary is an error
//! that names the entry.
#![forbid(unsafe_code)]

mod bpe;
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
