//! Why a model cannot be described.

use std::path::PathBuf;

/// Each says what in the model's own description is missing, wrong or not supported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchError {
    /// An architecture that has no descriptor.
    #[error("{}: the architecture `{name}` is not supported; those that run are {known}", path.display())]
    UnknownArchitecture {
        /// The file.
        path: PathBuf,
        /// What the file says.
        name: String,
        /// What runs.
        known: String,
    },
    /// The metadata of a GGUF file cannot be read as needed.
    #[error(transparent)]
    Gguf(#[from] akunu_gguf::GgufError),
    /// The files of a speech model cannot be read as needed.
    #[error(transparent)]
    Speech(Box<akunu_gguf::SpeechError>),
    /// A field that the architecture needs is not there.
    #[error("{}: `{key}` is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The field.
        key: String,
    },
    /// A field of another type, or a value that no model can have.
    #[error("{}: `{key}` is {found}, which must be {wanted}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The field.
        key: String,
        /// Its value.
        found: String,
        /// What would do.
        wanted: &'static str,
    },
    /// Something that a model asks for and that we do not have.
    #[error("{}: {what} is not implemented", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it asks for.
        what: String,
    },
    /// A file beside the weights that is not what its name says.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A weight that the architecture needs is not in the file.
    #[error("{}: the weight `{name}` is missing", path.display())]
    MissingWeight {
        /// The file.
        path: PathBuf,
        /// Canonical name.
        name: String,
    },
    /// A weight has another shape than the config says.
    #[error("{}: the weight `{name}` is {found_rows} × {found_cols}, the config says {rows} × {cols}", path.display())]
    WeightShape {
        /// The file.
        path: PathBuf,
        /// Canonical name.
        name: String,
        /// Rows in the file.
        found_rows: usize,
        /// Columns in the file.
        found_cols: usize,
        /// Rows by the config.
        rows: usize,
        /// Columns by the config.
        cols: usize,
    },
}
