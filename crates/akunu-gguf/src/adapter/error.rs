//! What can be wrong with an adapter.

use crate::gguf::GgufError;
use crate::safetensors::FolderProblem;
use std::path::PathBuf;

/// An adapter that cannot be used, and why: a sentence that names the file and, where there is one, the tensor.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct AdapterError(Reason);

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Gguf(GgufError),
    #[error("{}: {problem}", path.display())]
    File {
        path: PathBuf,
        #[source]
        problem: AdapterProblem,
    },
}

impl From<GgufError> for AdapterError {
    fn from(error: GgufError) -> AdapterError {
        AdapterError(Reason::Gguf(error))
    }
}

/// Why an adapter is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdapterProblem {
    /// The operating system refused.
    #[error("cannot be opened: {0}")]
    Io(#[from] std::io::Error),
    /// A safetensors file that cannot be read.
    #[error(transparent)]
    Safetensors(#[from] FolderProblem),
    /// Some other file.
    #[error(
        "is not an adapter: give a GGUF file, or a folder with adapter_config.json and adapter_model.safetensors"
    )]
    Unknown,
    /// A whole model.
    #[error("is a model, not an adapter: load it as the model instead")]
    Model,
    /// The description of a safetensors adapter is missing.
    #[error("does not exist: an adapter in safetensors is a folder that has this file")]
    NoConfig,
    /// A field of the description is missing, or is nothing that can be used.
    #[error("`{field}` {fault}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is wrong with it.
        fault: String,
    },
    /// Alpha, which the scale of an adapter follows from, is not there.
    #[error("does not say its alpha (`{0}`), which its scale follows from")]
    NoAlpha(&'static str),
    /// An alpha that makes no scale.
    #[error(
        "says in `{field}` that alpha is {alpha:?}: it must be a number that an f32 holds, and not 0"
    )]
    Alpha {
        /// Where it says so.
        field: &'static str,
        /// What it says.
        alpha: f64,
    },
    /// A rank of 0.
    #[error("has the rank 0, so it changes nothing")]
    NoRank,
    /// A feature of adapters that is not supported.
    #[error("{0}, which is not supported")]
    Unsupported(String),
    /// A tensor that does not belong to a known weight.
    #[error("has the tensor `{0}`, which belongs to no weight that an adapter can change")]
    Tensor(String),
    /// Two tensors for the same half.
    #[error("has two tensors for the weight `{0}`")]
    Twice(String),
    /// A matrix without the other.
    #[error("has only one of the two matrices for the weight `{weight}`: {missing} is missing")]
    Half {
        /// Canonical name.
        weight: String,
        /// `A` or `B`.
        missing: &'static str,
    },
    /// Matrices that do not fit together.
    #[error("the matrices for the weight `{weight}` do not fit: A has the rank {a} and B {b}")]
    Ranks {
        /// Canonical name.
        weight: String,
        /// Rows of A.
        a: usize,
        /// Columns of B.
        b: usize,
    },
    /// Values that cannot be read, or are not numbers.
    #[error("the tensor `{tensor}` cannot be used: {why}")]
    Numbers {
        /// Its name in the file.
        tensor: String,
        /// What is wrong.
        why: String,
    },
    /// An adapter without a matrix.
    #[error("has no matrices")]
    Empty,
}

impl AdapterProblem {
    /// The problem of one file.
    pub(super) fn in_file(self, path: impl Into<PathBuf>) -> AdapterError {
        let path = path.into();
        let problem = self;
        AdapterError(Reason::File { path, problem })
    }
}
