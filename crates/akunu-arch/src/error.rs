//! Why a model cannot be described.

use std::path::PathBuf;

/// Each says what in the model's own description is missing, wrong or not supported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchError {
    /// An architecture that we do not have.
    #[error("{}: the architecture `{name}` is not supported; those that run are {known}", path.display())]
    UnknownArchitecture {
        /// The file.
        path: PathBuf,
        /// What the file says.
        name: String,
        /// The supported architectures.
        known: String,
    },
    /// A vision tower that we do not have.
    #[error("{}: vision towers of the kind `{name}` are not supported; those that run are {known}", path.display())]
    UnknownProjector {
        /// The file.
        path: PathBuf,
        /// Name of the projector, or `model_type` of the folder.
        name: String,
        /// The supported kinds.
        known: String,
    },
    /// A model without a vision tower.
    #[error("{}: has no vision tower: {why}", path.display())]
    NoTower {
        /// The file.
        path: PathBuf,
        /// The missing field, or the value that rules a tower out.
        why: String,
    },
    /// A vision tower where a language model or an encoder is wanted.
    #[error(
        "{}: is a vision tower (`clip`), which reads images for another file; name that of the language model",
        path.display()
    )]
    OnlyTower {
        /// The file.
        path: PathBuf,
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
    #[error(
        "{}: the weight `{name}` is missing: there is no tensor `{}` of {rows} × {cols}",
        path.display(),
        tensors.join("` or `")
    )]
    MissingWeight {
        /// The file.
        path: PathBuf,
        /// Canonical name.
        name: String,
        /// Its rows.
        rows: u32,
        /// Its columns.
        cols: u32,
        /// The tensors that it could be in this file.
        tensors: Vec<String>,
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
        rows: u32,
        /// Columns by the config.
        cols: u32,
    },
    /// The matrices of experts, and there are more or fewer of them than the config says.
    #[error("{}: the tensor `{name}` has the matrices of {found} experts, the config says {wanted}", path.display())]
    Stack {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its third dimension.
        found: usize,
        /// Experts by the config.
        wanted: u32,
    },
    /// An adapter for another kind of model.
    #[error("{}: the adapter is for `{found}` models, and this is a `{wanted}` model", path.display())]
    AdapterArchitecture {
        /// The adapter.
        path: PathBuf,
        /// What it is for.
        found: String,
        /// What the model is.
        wanted: &'static str,
    },
    /// An adapter for a weight that the model does not have, or that is no factor of a product.
    #[error("{}: the adapter changes `{name}`, which is not the weight of a product in this model", path.display())]
    AdapterWeight {
        /// The adapter.
        path: PathBuf,
        /// Canonical name.
        name: String,
    },
    /// An adapter for a model of another shape.
    #[error(
        "{}: the adapter is for a model of another shape: its `{name}` is {found_rows} × {found_cols}, this model's is \
         {rows} × {cols}",
        path.display()
    )]
    AdapterShape {
        /// The adapter.
        path: PathBuf,
        /// Canonical name.
        name: String,
        /// Outputs by the adapter.
        found_rows: usize,
        /// Inputs by the adapter.
        found_cols: usize,
        /// Outputs of the model's weight.
        rows: usize,
        /// Inputs of the model's weight.
        cols: usize,
    },
}
