//! Why a model cannot be loaded or run.

use std::path::PathBuf;

use akunu_kernels::{DeviceError, PlanError};

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
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A plan was refused: a bug of ours, said instead of hidden.
    #[error("the plan is wrong: {0}")]
    Plan(#[from] PlanError),
    /// More tokens than the context holds.
    #[error("{needed} tokens do not fit a context of {context}; shorten the text or raise --ctx")]
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
    /// Generation before any token was given.
    #[error("there is nothing to go on from: give at least one token first")]
    NothingToContinue,
    /// A token id that the model does not have.
    #[error("token {id} is beyond the vocabulary of {vocab_size}")]
    UnknownToken {
        /// The id.
        id: u32,
        /// Ids are below this.
        vocab_size: u32,
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
