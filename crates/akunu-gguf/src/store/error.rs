//! What can go wrong when a weight store is opened.

use crate::gguf::GgufError;
use crate::safetensors::{ElementType, FolderError};
use std::path::PathBuf;

/// A model that cannot be opened, and why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A GGUF file is refused.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// A model folder is refused.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Two tensors claim to be the same weight.
    #[error("{}: two tensors are `{name}`, one of them `{tensor}`", path.display())]
    DuplicateWeight {
        /// The model.
        path: PathBuf,
        /// The canonical name.
        name: String,
        /// One of the tensors.
        tensor: String,
    },
    /// A weight has a type that weights cannot have.
    #[error("{}: weight `{tensor}` has the type {element}, which is not supported", path.display())]
    ElementType {
        /// The model.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its type.
        element: ElementType,
    },
}
