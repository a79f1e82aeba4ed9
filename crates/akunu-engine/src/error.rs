//! Why a model cannot be loaded or run.

use std::fmt;
use std::path::PathBuf;

use akunu_kernels::{DeviceError, PlanError};

use crate::session::SavedSessionError;

/// An error of the engine. Each says in one sentence what is wrong and, where there is one, the way
/// out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file cannot be read as a model.
    #[error(transparent)]
    Store(#[from] akunu_gguf::StoreError),
    /// The model's description is missing something or asks for what we do not have.
    #[error(transparent)]
    Arch(#[from] akunu_arch::ArchError),
    /// The vocabulary cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] akunu_tokenizer::TokenizerError),
    /// A weight is in a format that has no kernels.
    #[error("{}: the weight `{name}` is {dtype}, which cannot be run; quantise the model to another type", path.display())]
    WeightType {
        /// The file.
        path: PathBuf,
        /// Canonical name.
        name: String,
        /// Its type.
        dtype: akunu_types::DType,
    },
    /// A norm or bias could not be read as numbers.
    #[error("{}: the weight `{name}` cannot be read: {why}", path.display())]
    Weight {
        /// The file.
        path: PathBuf,
        /// Canonical name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A kind of model that does not generate text.
    #[error("{}: `{arch}` models do not generate text", path.display())]
    NotADecoder {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        arch: &'static str,
    },
    /// A file of tokens for tokenizers.
    #[error("{}: holds a vocabulary and no weights: it has tokens, but cannot generate any", path.display())]
    OnlyVocabulary {
        /// The file.
        path: PathBuf,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A plan was refused: a bug of ours, said instead of hidden.
    #[error("the plan is wrong: {0}")]
    Plan(#[from] PlanError),
    /// More tokens than the context holds.
    #[error(
        "{needed} tokens do not fit a context of {context}; shorten the text or make the context larger"
    )]
    ContextFull {
        /// Tokens that were to be in it.
        needed: usize,
        /// What it holds.
        context: u32,
    },
    /// A context that is empty or beyond what positions can count.
    #[error("a context of {found} tokens is not possible; choose 1 to {max}")]
    ContextSize {
        /// What was asked for.
        found: u32,
        /// The largest.
        max: u32,
    },
    /// A context that needs more memory than there is.
    #[error(
        "a context of {context} tokens needs {cache} for keys and values and {scratch} to work with \
         ({chunk} tokens at once), but only {available} of memory are free; choose a smaller context"
    )]
    ContextMemory {
        /// Tokens of the context.
        context: u32,
        /// Tokens that are prefilled at once.
        chunk: u32,
        /// Size of the KV cache.
        cache: Bytes,
        /// Size of the other buffers.
        scratch: Bytes,
        /// What the device has left.
        available: Bytes,
    },
    /// A batch of no sequences, or of more than the kernels take at once.
    #[error("a batch of {found} sequences is not possible; choose 1 to {max}")]
    BatchSize {
        /// What was asked for.
        found: u32,
        /// The most.
        max: u32,
    },
    /// A session that joins a batch without room.
    #[error("all {sequences} places of the batch are taken; let a sequence leave first")]
    BatchFull {
        /// Places.
        sequences: u32,
    },
    /// A session that joins a batch of another model.
    #[error(
        "a session of {} cannot join a batch of {}; make it from the model of the batch",
        session.display(), batch.display()
    )]
    OtherModel {
        /// The session's model.
        session: PathBuf,
        /// The batch's.
        batch: PathBuf,
    },
    /// Generation before any token was given.
    #[error("there is nothing to go on from: give at least one token first")]
    NothingToContinue,
    /// The watch of a reading ended it. What was read stays in the session.
    #[error("the reading was stopped after {done} of {total} tokens")]
    Cancelled {
        /// Tokens that had gone through the model.
        done: usize,
        /// Tokens that were to go through it.
        total: usize,
    },
    /// A token id that the model does not have.
    #[error("token {id} is beyond the vocabulary of {vocab_size}")]
    UnknownToken {
        /// The id.
        id: u32,
        /// Ids are below this.
        vocab_size: u32,
    },
    /// A session cannot be saved or restored.
    #[error("{}: {error}", path.display())]
    SavedSession {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: SavedSessionError,
    },
    /// A sampling option outside of its range.
    #[error("{option} is {found}, which must be {wanted}")]
    Sampling {
        /// The option.
        option: &'static str,
        /// Its value.
        found: f32,
        /// The range.
        wanted: &'static str,
    },
}

/// A number of bytes, shown as people say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..0x10_0000 => write!(f, "{:.1} KiB", bytes / 1024.0),
            0x10_0000..0x4000_0000 => write!(f, "{:.1} MiB", bytes / (1024.0 * 1024.0)),
            _ => write!(f, "{:.1} GiB", bytes / (1024.0 * 1024.0 * 1024.0)),
        }
    }
}
