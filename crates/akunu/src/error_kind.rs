//! Kinds of errors, for programs that react to them. Python's exceptions and C's codes follow from these kinds.

use std::error::Error as StdError;
use std::io;

use akunu_cpu::CpuError;
use akunu_engine::EngineError;
use akunu_program::DeviceError;

use crate::error::Error;

/// A kind of error.
///
/// ```no_run
/// use akunu::ErrorKind;
///
/// # let mut chat = akunu::Model::open("model.gguf")?.chat()?;
/// let answer: Result<String, _> = chat.ask("Hello").and_then(|reply| reply.collect());
/// match answer.map_err(|error| error.kind()) {
///     Ok(text) => println!("{text}"),
///     Err(ErrorKind::ContextFull) => chat.reset(),
///     Err(kind) => eprintln!("{kind:?}"),
/// }
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file or folder does not exist.
    NotFound,
    /// A file is not a model that can be run: it is damaged, or of a kind that is not supported.
    UnsupportedModel,
    /// A text is longer than the context or the model allows.
    ContextFull,
    /// There is not enough memory.
    OutOfMemory,
    /// The device is not there, or failed.
    Device,
    /// An argument or option that is not possible.
    InvalidArgument,
    /// A model cannot be downloaded.
    Download,
    /// The computation was cancelled before there was an answer.
    Cancelled,
    /// Anything else; the message says what.
    Other,
}

impl Error {
    /// The kind of the error, for programs that react to it.
    pub fn kind(&self) -> ErrorKind {
        if is_missing_file(self) {
            return ErrorKind::NotFound;
        }
        match self {
            Error::Engine(error) => engine(error),
            Error::Cpu(CpuError::Isa { .. } | CpuError::Threads { .. }) => {
                ErrorKind::InvalidArgument
            }
            Error::Cpu(_) | Error::NoMetal | Error::NoCuda => ErrorKind::Device,
            #[cfg(feature = "fetch")]
            Error::Fetch(_) => ErrorKind::Download,
            #[cfg(feature = "speech")]
            Error::Audio(_) => ErrorKind::Other,
            #[cfg(feature = "images")]
            Error::PictureFile(_)
            | Error::Picture(_)
            | Error::NoPlaceForImages
            | Error::NoImageToken { .. }
            | Error::ImageGone => ErrorKind::InvalidArgument,
            #[cfg(feature = "images")]
            Error::ImageProcessor { .. } => ErrorKind::UnsupportedModel,
            #[cfg(feature = "async")]
            Error::NoThread(_) => ErrorKind::Other,
            Error::ChatFile { .. } => ErrorKind::Other,
            Error::ManyLabels { .. } => ErrorKind::UnsupportedModel,
            Error::TextTooLong { .. } => ErrorKind::ContextFull,
            Error::UnknownDevice(_)
            | Error::EmptyText { .. }
            | Error::Dimensions { .. }
            | Error::Language { .. }
            | Error::OnlyEnglish { .. }
            | Error::WindowBatch { .. }
            | Error::NothingToResume
            | Error::NothingAsked => ErrorKind::InvalidArgument,
        }
    }
}

/// Whether the error comes from a missing file.
fn is_missing_file(error: &Error) -> bool {
    let mut cause: Option<&dyn StdError> = Some(error);
    while let Some(error) = cause {
        let system = error.downcast_ref::<io::Error>();
        if system.is_some_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn engine(error: &EngineError) -> ErrorKind {
    match error {
        EngineError::Store(_)
        | EngineError::Arch(_)
        | EngineError::Tokenizer(_)
        | EngineError::WeightType { .. }
        | EngineError::Weight { .. }
        | EngineError::NotNumbers { .. }
        | EngineError::NotADecoder { .. }
        | EngineError::NotAnEncoder { .. }
        | EngineError::NoClassifier { .. }
        | EngineError::NotSpeech { .. }
        | EngineError::OnlyVocabulary { .. } => ErrorKind::UnsupportedModel,
        EngineError::ContextFull { .. } | EngineError::TextTooLong { .. } => ErrorKind::ContextFull,
        EngineError::PoolFull { .. }
        | EngineError::ContextMemory { .. }
        | EngineError::Device(DeviceError::Memory { .. } | DeviceError::Budget { .. }) => {
            ErrorKind::OutOfMemory
        }
        EngineError::Device(_) | EngineError::Step { .. } => ErrorKind::Device,
        EngineError::Cancelled { .. } => ErrorKind::Cancelled,
        EngineError::EmptyText
        | EngineError::Image(_)
        | EngineError::TowerImage { .. }
        | EngineError::KvFormat { .. }
        | EngineError::ContextSize { .. }
        | EngineError::BatchSize { .. }
        | EngineError::BatchFull { .. }
        | EngineError::OtherModel { .. }
        | EngineError::NothingToContinue
        | EngineError::UnknownToken { .. }
        | EngineError::Grammar(_)
        | EngineError::GrammarModel { .. }
        | EngineError::DraftVocabulary { .. }
        | EngineError::AdapterModel { .. }
        | EngineError::AdapterScale { .. }
        | EngineError::Sampling { .. }
        | EngineError::UnknownSampling { .. } => ErrorKind::InvalidArgument,
        _ => ErrorKind::Other,
    }
}
