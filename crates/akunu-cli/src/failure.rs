//! Why a command failed, in one sentence.

use crate::interrupt;
use crate::units::bytes;
use akunu::{EngineError, GrammarError};
use akunu_cpu::CpuError;
use akunu_fetch::FetchError;
use akunu_gguf::quant::QuantError;
use akunu_gguf::{GgufError, ImatrixError, StoreError};
use akunu_tokenizer::TokenizerError;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A model cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A GGUF file cannot be read or written.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// An importance matrix cannot be read.
    #[error(transparent)]
    Imatrix(#[from] ImatrixError),
    /// Two bits without importances.
    #[error(
        "{0} needs an importance matrix: make one with `akunu-cli imatrix`, then add --imatrix FILE"
    )]
    NeedsImportance(&'static str),
    /// A model cannot be loaded or run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A grammar cannot be compiled.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// The same for one that lies in a file.
    #[error("{}: {error}", path.display())]
    GrammarFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: GrammarError,
    },
    /// What should be a schema or a grammar, or the file of one.
    #[error("there is no file `{given}`, and it is not {kind}")]
    NeitherFileNor {
        /// How it begins.
        given: String,
        /// What it could be.
        kind: &'static str,
    },
    /// A model cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The argument of `-m` is neither a file nor a known name.
    #[error(
        "there is no file `{name}` and no model of that name; the known names are {known}, and \
         hf:owner/repository/file.gguf takes a file from Hugging Face"
    )]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The names of the catalogue.
        known: String,
    },
    /// A name of the catalogue that is no model.
    #[error("`{0}` is for tests and cannot be run as a model; see `akunu-cli pull --list`")]
    NotAModel(String),
    /// An image for a model without a vision tower.
    #[error(
        "{}: its folder has no vision tower (mmproj….gguf) for this model: give one with --mmproj FILE",
        model.display()
    )]
    NoTower {
        /// The model.
        model: PathBuf,
    },
    /// A Whisper where another model is needed.
    #[error("{} is a Whisper, which transcribes speech; give a model that {needs}", path.display())]
    IsSpeech {
        /// The model.
        path: PathBuf,
        /// What it should do.
        needs: &'static str,
    },
    /// Another model where a Whisper is needed.
    #[error(
        "{} is a {architecture} model, which {does}; transcribe needs a Whisper, such as whisper-base",
        path.display()
    )]
    NotSpeech {
        /// The model.
        path: PathBuf,
        /// Its architecture.
        architecture: &'static str,
        /// What it does.
        does: &'static str,
    },
    /// A model that is to be removed is not there.
    #[error("there is no model `{name}` to remove; {here}")]
    NotStored {
        /// What was asked for.
        name: String,
        /// The models that can be removed, as text.
        here: String,
    },
    /// There is no place for downloads.
    #[error("there is no folder for downloaded models: set HOME, or give a file with -m")]
    NoCache,
    /// The CPU device cannot be made.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// There is no GPU that Metal drives.
    #[error("this machine has no Metal device, which only Macs have; use --device cpu")]
    NoMetal,
    /// The CUDA device is not part of this program.
    #[error(
        "this program was built without the CUDA device; build it with `--features cuda`, or use --device cpu"
    )]
    NoCuda,
    /// The simulator is not part of this program.
    #[cfg(not(feature = "sim"))]
    #[error("this program was built without the simulator; build it with `--features sim`")]
    NoSimulator,
    /// The simulator cannot be made.
    #[cfg(feature = "sim")]
    #[error(transparent)]
    Simulator(#[from] akunu_sim::SimError),
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that should hold a conversation does not.
    #[error("{} holds no conversation that /save wrote: {why}", path.display())]
    NotAConversation {
        /// The file.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
    /// Line editing failed.
    #[error("the terminal cannot be read: {0}")]
    Terminal(#[from] rustyline::error::ReadlineError),
    /// A text cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that is no text.
    #[error("{}: byte {at} is not UTF-8 text", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first byte that is wrong.
        at: usize,
    },
    /// A text of several, or a line of a file, that is empty.
    #[error("text {number} is empty; remove it")]
    EmptyText {
        /// Which one, from 1.
        number: usize,
    },
    /// No texts at all.
    #[error(
        "there are no texts: give some as arguments, or one in each line of a file or of standard input"
    )]
    NoTexts,
    /// A text that must not be cut and would be.
    #[error(
        "text {number} has {found} tokens, and the model reads at most {max}: shorten it, or let it be cut by leaving out \
         --strict"
    )]
    LongText {
        /// Which one, from 1.
        number: usize,
        /// Its tokens.
        found: usize,
        /// Tokens that are possible.
        max: usize,
    },
    /// Several transcripts in a format that a file can have only one of.
    #[error("several recordings do not fit one {0} file: add --output FOLDER for a file each")]
    ManyRecordings(&'static str),
    /// Two transcripts with one name.
    #[error(
        "{} and {} would both be written to {}: transcribe them in two runs, into two folders",
        first.display(), second.display(), output.display()
    )]
    SameTranscript {
        /// A recording.
        first: PathBuf,
        /// Another.
        second: PathBuf,
        /// Their file.
        output: PathBuf,
    },
    /// A prompt of no tokens.
    #[error("the prompt is empty: there is nothing to continue")]
    EmptyPrompt,
    /// A benchmark without a test.
    #[error("there is nothing to measure: give tokens to read with -p, or tokens to write with -n")]
    NothingToMeasure,
    /// A text without a whole chunk.
    #[error(
        "the text has {found} tokens, which is less than one chunk of {context}; give a longer text, or lower --ctx"
    )]
    TextTooShort {
        /// Its tokens.
        found: usize,
        /// Tokens of a chunk.
        context: u32,
    },
    /// Chunks whose second half is empty.
    #[error("with --ctx {0} there is nothing to score; choose 3 or more")]
    TooSmallToScore(u32),
    /// Chunks of which no input can be read.
    #[error("with --ctx {0} the inputs of the matrices cannot be read; choose 2 or more")]
    TooSmallToObserve(u32),
    /// A tensor cannot be converted.
    #[error("tensor {tensor}: {problem}")]
    Tensor {
        /// Its name.
        tensor: String,
        /// What its type or its numbers do not allow.
        problem: QuantError,
    },
    /// A tokenizer cannot be built, or cannot encode.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The text on standard input is not UTF-8.
    #[error("standard input: byte {0} is not UTF-8 text")]
    InputNotUtf8(usize),
    /// A line of standard input is not UTF-8.
    #[error("standard input: line {0} is not UTF-8 text")]
    LineNotUtf8(usize),
    /// More text than is read there.
    #[error("{name} has more than {}, the most that is read there: give a shorter text", bytes(*limit))]
    TooLong {
        /// The file, or standard input.
        name: String,
        /// Bytes that are read.
        limit: u64,
    },
    /// There is no question.
    #[error("there is no question: give one as an argument, or text on standard input")]
    NothingAsked,
    /// What should be a token id is none.
    #[error("standard input: `{word}` is no token id from 0 to {}", vocab_size.saturating_sub(1))]
    NotAnId {
        /// The word found.
        word: String,
        /// Tokens of the vocabulary.
        vocab_size: usize,
    },
    /// A command that works on GGUF files was given a folder.
    #[error("{} is a folder: this command takes a GGUF file", .0.display())]
    IsFolder(PathBuf),
    /// The output exists.
    #[error("{} exists: choose another name, or add --force to replace it", .0.display())]
    Exists(PathBuf),
    /// Input and output are the same file.
    #[error("{} is the input too: choose another name for the output", .0.display())]
    OutputIsInput(PathBuf),
    /// Standard output or input failed.
    #[error("standard output or input: {0}")]
    Stream(#[from] io::Error),
    /// A result could not be turned into JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A server cannot be started.
    #[error(transparent)]
    Server(akunu_server::ServerError),
    /// Keys were asked for, and there are none.
    #[error("--api-key or --api-key-file gives an empty key; a key has at least one character")]
    NoKeys,
    /// The file of `serve --config` is not as it should be.
    #[error("{}, line {line}: {why}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The mistake.
        why: String,
    },
    /// An option for one model, where there are several.
    #[error(
        "{option} is for one model, and {n} are served: give each its own in a file with --config"
    )]
    OneModelOnly {
        /// The option.
        option: &'static str,
        /// How many models there are.
        n: usize,
    },
    /// An option names a model that is not served.
    #[error("{option} {name}: no model of this name is served; there are: {known}")]
    NotServed {
        /// The option.
        option: &'static str,
        /// What was asked for.
        name: String,
        /// The names of the models, with commas.
        known: String,
    },
    /// There is nothing to answer.
    #[error(transparent)]
    Akunu(akunu::Error),
    /// A signal came before there was a result.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// A signal came in the middle of an answer.
    #[error("interrupted")]
    CutShort,
}

impl From<akunu::Error> for Failure {
    fn from(error: akunu::Error) -> Failure {
        match error {
            akunu::Error::Engine(EngineError::Tokenizer(error)) => Failure::Tokenizer(error),
            akunu::Error::Engine(error) => Failure::Engine(error),
            akunu::Error::Cpu(error) => Failure::Cpu(error),
            akunu::Error::NoMetal => Failure::NoMetal,
            akunu::Error::NoCuda => Failure::NoCuda,
            other => Failure::Akunu(other),
        }
    }
}

impl From<akunu_server::ServerError> for Failure {
    fn from(error: akunu_server::ServerError) -> Failure {
        match error {
            akunu_server::ServerError::Model(error) => error.into(),
            other => Failure::Server(other),
        }
    }
}

impl Failure {
    /// Whether the reader of our output has closed it, as `head` does: then there is nothing to report.
    pub fn is_closed_pipe(&self) -> bool {
        match self {
            Failure::Stream(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Failure::Json(error) => error.io_error_kind() == Some(io::ErrorKind::BrokenPipe),
            _ => false,
        }
    }

    /// What helps a command with --ctx: the engine, whose errors these are, has no flags.
    pub fn hint(&self) -> Option<&'static str> {
        use EngineError::{ContextFull, ContextMemory, ContextSize};
        match self {
            Failure::Engine(ContextFull { .. } | ContextMemory { .. } | ContextSize { .. }) => {
                Some(" (--ctx N sets the context)")
            }
            _ => None,
        }
    }

    /// What the process returns.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Interrupted | Failure::CutShort | Failure::Fetch(FetchError::Cancelled) => {
                ExitCode::from(interrupt::exit_code())
            }
            _ if self.is_closed_pipe() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}
