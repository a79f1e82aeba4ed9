//! The errors of this crate.

use akunu_cpu::CpuError;
use akunu_engine::{EngineError, GrammarError};
use akunu_tokenizer::TokenizerError;

/// An error, in one sentence. Its [kind](Error::kind) is for programs, its `source` for those who look closer.
///
/// ```
/// let error = akunu::Model::open("nowhere.gguf").err().expect("there is no such file");
/// assert_eq!(error.kind(), akunu::ErrorKind::NotFound);
/// assert!(error.to_string().starts_with("nowhere.gguf: "));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no reply, or it is not the last thing that was said.
    #[error("there is no answer to continue")]
    NothingToResume,
    /// The model cannot be opened, or the engine cannot go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The CPU device cannot be made.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// Metal was asked for where there is none.
    #[error("this machine has no Metal device, which only Macs have")]
    NoMetal,
    /// CUDA was asked for, and is not part of this build.
    #[error("this program was built without the CUDA device, which is the feature `cuda`")]
    NoCuda,
    /// A name that no device has.
    #[error("there is no device `{0}`; there are auto, cpu, metal, cuda, cuda:1 and twin")]
    UnknownDevice(String),
    /// A saved conversation cannot be written or read.
    #[error("{}: the conversation cannot be saved or restored: {source}", path.display())]
    ChatFile {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// A model cannot be fetched.
    #[cfg(feature = "fetch")]
    #[error(transparent)]
    Fetch(#[from] akunu_fetch::FetchError),
    /// A text is too long, and must not be cut.
    #[error("text {} has {found} tokens, and the model reads at most {max}: shorten it", index + 1)]
    TextTooLong {
        /// Which of the texts, from 0.
        index: usize,
        /// Its tokens.
        found: usize,
        /// Tokens that are possible.
        max: usize,
    },
    /// A text without a single token among several.
    #[error("text {} is empty, and an empty text has no meaning to compute: leave it out", index + 1)]
    EmptyText {
        /// Which of the texts, from 0.
        index: usize,
    },
    /// A number of dimensions that is 0 or more than the model has.
    #[error("vectors of {found} dimensions are not possible: this model has {max}")]
    Dimensions {
        /// What was asked for.
        found: usize,
        /// What the model has.
        max: usize,
    },
    /// A classifier of more than one class.
    #[error("{}: gives {n_labels} scores for a pair of texts; a reranker gives one", path.display())]
    ManyLabels {
        /// The model.
        path: std::path::PathBuf,
        /// The number of its scores.
        n_labels: u32,
    },
    /// An audio file cannot be read.
    #[cfg(feature = "speech")]
    #[error(transparent)]
    Audio(#[from] akunu_audio::AudioError),
    /// An image file cannot be read.
    #[cfg(feature = "images")]
    #[error(transparent)]
    PictureFile(#[from] akunu_image::PictureError),
    /// An image cannot be used.
    #[cfg(feature = "images")]
    #[error("the image {0}")]
    Picture(#[from] akunu_image::PictureProblem),
    /// The images of a tower cannot be prepared.
    #[cfg(feature = "images")]
    #[error("{}: images cannot be prepared: {why}", path.display())]
    ImageProcessor {
        /// The tower's file or folder.
        path: std::path::PathBuf,
        /// The reason.
        why: akunu_image::ConfigError,
    },
    /// The model's chat template has no places for images.
    #[cfg(feature = "images")]
    #[error("the model's chat template has no places for images: use a model that reads images")]
    NoPlaceForImages,
    /// The vocabulary lacks a token that stands for images or around them.
    #[cfg(feature = "images")]
    #[error("the model has no token `{name}`: the vision tower is of another model")]
    NoImageToken {
        /// The token.
        name: String,
    },
    /// A conversation that was restored has images, which are not part of its file.
    #[cfg(feature = "images")]
    #[error("an image of an earlier message is not there any more: ask about it again")]
    ImageGone,
    /// A language that the speech model does not support.
    #[error("the model knows no language `{name}`; it knows {known}")]
    Language {
        /// What was asked for.
        name: String,
        /// The supported languages.
        known: String,
    },
    /// A language or a translation was requested from a model that supports only English.
    #[error("this model knows only English: it cannot {wanted}; use one for several languages")]
    OnlyEnglish {
        /// What it was asked to do.
        wanted: String,
    },
    /// More windows were to be decoded together than can be, or none.
    #[error("{found} windows cannot be decoded together: 1 to 16 can")]
    WindowBatch {
        /// As many were wanted.
        found: usize,
    },
    /// The system has no thread for a reply.
    #[cfg(feature = "async")]
    #[error("the system gives no thread for the reply: {0}")]
    NoThread(#[source] std::io::Error),
    /// A reply was requested, but there is no question.
    #[error("there is no question to answer")]
    NothingAsked,
}

impl Error {
    pub(crate) fn chat_file(path: &std::path::Path, source: std::io::Error) -> Error {
        Error::ChatFile {
            path: path.to_path_buf(),
            source,
        }
    }
}

impl From<TokenizerError> for Error {
    fn from(error: TokenizerError) -> Error {
        Error::Engine(error.into())
    }
}

impl From<GrammarError> for Error {
    fn from(error: GrammarError) -> Error {
        Error::Engine(error.into())
    }
}
