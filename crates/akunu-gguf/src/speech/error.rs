//! What can be wrong with the folder of a speech model.

use crate::ctranslate2::Ct2Fault;
use crate::safetensors::FolderError;
use akunu_types::DType;
use std::path::{Path, PathBuf};

/// A speech model that cannot be opened, and why: a sentence that names the file and, where there is one, the weight.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SpeechError(Reason);

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Folder(FolderError),
    #[error("{}: {problem}", path.display())]
    File {
        path: PathBuf,
        #[source]
        problem: SpeechProblem,
    },
}

impl From<FolderError> for SpeechError {
    fn from(error: FolderError) -> SpeechError {
        SpeechError(Reason::Folder(error))
    }
}

/// What is wrong with a file of a speech model.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpeechProblem {
    /// CTranslate2's container is damaged.
    #[error(transparent)]
    Ct2(#[from] Ct2Fault),
    /// A model of CTranslate2 that is no Whisper.
    #[error("holds a model of the kind `{0}`; of CTranslate2's models only Whisper can be run")]
    Spec(String),
    /// A weight that the model needs is not there.
    #[error("has no weight `{0}`")]
    Missing(String),
    /// A weight of a type that is not read.
    #[error(
        "weight `{name}` has the type {dtype}; f32, f16 and bf16 can be read (convert with --quantization float16)"
    )]
    Type {
        /// The weight.
        name: String,
        /// Its type.
        dtype: DType,
    },
    /// A matrix of q, k and v together that is not as long as three of them.
    #[error("tensor `{0}` cannot be cut into equal parts")]
    Fused(String),
    /// The operating system refused to read it.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is no JSON.
    #[error("is no valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is longer than any real one.
    #[error("has {0} bytes, more than any real config")]
    JsonSize(u64),
}

impl SpeechProblem {
    pub(super) fn in_file(self, path: &Path) -> SpeechError {
        let path = path.to_path_buf();
        let problem = self;
        SpeechError(Reason::File { path, problem })
    }
}
