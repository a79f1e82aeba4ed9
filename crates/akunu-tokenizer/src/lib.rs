//! Text to token ids and back, and chat templates.
//!
//! * [`Tokenizer`]: from the metadata of a GGUF file, or from a `tokenizer.json`.
//! * [`DecodeStream`]: text from tokens as they come, in whole characters.
//! * [`ChatTemplate`]: a conversation as the text that a model was trained on.
//! * [`Vocabulary`]: what a GGUF file says, checked.
//!
//! Byte-level BPE and WordPiece are pipelines of the `tokenizers` crate; SentencePiece BPE by scores,
//! which that crate cannot express, is our own. Model files are not trusted: a damaged vocabulary is
//! an error that names the entry.
#![forbid(unsafe_code)]

mod backend;
mod error;
mod json;
mod pieces;
pub mod pretokenizer;
mod sentencepiece;
mod special;
mod stream;
mod template;
mod tokenizer;
pub mod vocabulary;

pub use error::TokenizerError;
pub use json::TokenizerConfig;
pub use stream::DecodeStream;
pub use template::{ChatTemplate, Message, RenderOptions, TemplateError};
pub use tokenizer::{EncodeOptions, Tokenizer};
pub use vocabulary::{SpecialIds, Vocabulary};
