//! Why a model cannot be loaded or run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use akunu_program::DeviceError;
use akunu_types::KvFormat;

/// An error of the engine. Each message says what is wrong and, where possible, how to fix
/// it.
///
/// ```no_run
/// use akunu_engine::EngineError;
/// # fn example(session: &mut akunu_engine::Session, prompt: &[u32]) -> Result<(), akunu_engine::EngineError> {
/// match session.feed(prompt) {
///     Err(EngineError::ContextFull { .. }) => session.clear(),
///     fed => println!("{} tokens were read", fed?.processed),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file cannot be read as a model.
    #[error(transparent)]
    Store(#[from] akunu_gguf::StoreError),
    /// The model's description is incomplete, or needs an unsupported feature.
    #[error(transparent)]
    Arch(#[from] akunu_arch::ArchError),
    /// The vocabulary cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] akunu_tokenizer::TokenizerError),
    /// An image that cannot be part of a prompt.
    #[error(transparent)]
    Image(#[from] crate::images::ImageError),
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
    /// Logits that are no numbers.
    #[error("{}: the model computes NaN instead of numbers, so its weights are damaged; fetch the file again", path.display())]
    NotNumbers {
        /// The file.
        path: PathBuf,
    },
    /// A state that is not finite any more.
    #[error(
        "{}: the state of layer {layer} has become NaN or infinite, so the model's weights are damaged; fetch the file again",
        path.display()
    )]
    State {
        /// The file.
        path: PathBuf,
        /// The number of the layer, from 0.
        layer: usize,
    },
    /// A router whose logits are not finite.
    #[error("{}: the router of layer {layer} computes NaN or an infinity, so the model's weights are damaged; fetch the file again", path.display())]
    Router {
        /// The file.
        path: PathBuf,
        /// The layer, counted from 0.
        layer: u32,
    },
    /// A kind of model that does not generate text.
    #[error("{}: `{arch}` models do not generate text", path.display())]
    NotADecoder {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        arch: &'static str,
    },
    /// A kind of model that does not turn texts into vectors by itself.
    #[error("{}: `{arch}` models are no encoders: they generate text", path.display())]
    NotAnEncoder {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        arch: &'static str,
    },
    /// Scores of an encoder that gives none.
    #[error(
        "{}: has no classifier and cannot score pairs of texts: use a reranker (a cross-encoder), such as \
         ms-marco-MiniLM-L6-v2",
        path.display()
    )]
    NoClassifier {
        /// The file.
        path: PathBuf,
    },
    /// A text without a single token.
    #[error("the text is empty: there is nothing to turn into a vector")]
    EmptyText,
    /// A text with more tokens than the model can read.
    #[error(
        "the text has {found} tokens, and the model reads at most {max}: shorten it, or let it be cut"
    )]
    TextTooLong {
        /// Its tokens.
        found: usize,
        /// Tokens that are possible.
        max: usize,
    },
    /// A model that does not turn speech into text.
    #[error("{}: is no speech model: {why}", path.display())]
    NotSpeech {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// An image that a vision tower cannot read.
    #[error("{}: the image does not fit this vision tower: {why}", path.display())]
    TowerImage {
        /// The tower's file or folder.
        path: PathBuf,
        /// The size that was found, and the size that the tower reads.
        why: String,
    },
    /// A model whose heads do not fit the format of keys and values.
    #[error(
        "{}: the heads of this model have {head_dim} elements, which keys and values in {} cannot hold: a multiple \
         of 32 is needed; use f16",
        path.display(),
        kv.name()
    )]
    KvFormat {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        kv: akunu_types::KvFormat,
        /// Elements of a head.
        head_dim: u32,
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
    /// The step that a sequence took part in failed.
    #[error("the step failed: {why}")]
    Step {
        /// The reason, shared by all sequences of the step.
        why: Arc<String>,
    },
    /// No page for keys and values is left.
    #[error(
        "all {positions} positions of the pool for keys and values are taken; make it larger or end other sequences"
    )]
    PoolFull {
        /// Positions of the pool.
        positions: usize,
    },
    /// A step of a sequence failed, and with it the state of its layers was lost.
    #[error("the state of the sequence was lost in a step that failed; feed its tokens again")]
    StateLost,
    /// A sequence that is not in the batch.
    #[error("the batch has no such sequence")]
    UnknownSequence,
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
        /// The largest possible.
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
        /// The maximum.
        max: u32,
    },
    /// A session that joins a batch without room.
    #[error("all {sequences} places of the batch are taken; let a sequence leave first")]
    BatchFull {
        /// The places of the batch.
        sequences: u32,
    },
    /// A long session of a model with long-rope while short ones hold keys.
    #[error(
        "a session of {context} tokens needs other RoPE factors than the open ones of up to {original} tokens; make the long \
         session first, or close the others"
    )]
    LongSession {
        /// Its context.
        context: u32,
        /// The context that the model was first trained with.
        original: u32,
    },
    /// A session that joins a batch of another model.
    #[error(
        "a session of {} cannot join a batch of {}; make it from the model of the batch",
        session.display(), batch.display()
    )]
    OtherModel {
        /// The session's model.
        session: PathBuf,
        /// The model of the batch.
        batch: PathBuf,
    },
    /// Generation before any token was given.
    #[error("there is nothing to continue: give at least one token first")]
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
        #[source]
        error: SavedSessionError,
    },
    /// A grammar that cannot be compiled.
    #[error(transparent)]
    Grammar(#[from] crate::grammar::GrammarError),
    /// A grammar that was compiled for another model.
    #[error("the grammar was compiled for another model; compile it for {}", path.display())]
    GrammarModel {
        /// The model that answers.
        path: PathBuf,
    },
    /// A grammar that became too large on the way.
    #[error("the answer cannot be continued by its grammar: {why}")]
    GrammarStopped {
        /// What the parser said.
        why: String,
    },
    /// A model without a block for multi-token prediction is to guess with it.
    #[error("{}: the model has no block for multi-token prediction (nextn, MTP) that could guess tokens, or it was loaded without", path.display())]
    NoMtp {
        /// The file.
        path: PathBuf,
    },
    /// A draft model that knows other tokens.
    #[error(
        "{} cannot draft for {}: {why}; both must have the same vocabulary",
        draft.display(), model.display()
    )]
    DraftVocabulary {
        /// The draft model.
        draft: PathBuf,
        /// The model that answers.
        model: PathBuf,
        /// What differs.
        why: String,
    },
    /// An adapter cannot be read.
    #[error(transparent)]
    Adapter(#[from] akunu_gguf::AdapterError),
    /// An adapter that was loaded beside another model.
    #[error(
        "the adapter {} was loaded beside another model; load it beside {}",
        adapter.display(), model.display()
    )]
    AdapterModel {
        /// The adapter.
        adapter: PathBuf,
        /// The model that is to use it.
        model: PathBuf,
    },
    /// A scale that is no number.
    #[error("the scale of the adapter {} is {scale}, which must be a finite number", adapter.display())]
    AdapterScale {
        /// The adapter.
        adapter: PathBuf,
        /// Its scale.
        scale: f32,
    },
    /// More adapters than a model can have.
    #[error("the model has {max} adapters, which is the maximum; drop one first")]
    TooManyAdapters {
        /// The maximum.
        max: usize,
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
    /// A sampling option that there is not.
    #[error(
        "there is no sampling option `{name}`; there are {}",
        known.join(", ")
    )]
    UnknownSampling {
        /// What was asked for.
        name: String,
        /// The options that there are.
        known: &'static [&'static str],
    },
}

/// Why a saved session cannot be written or used.
///
/// ```no_run
/// use akunu_engine::EngineError;
/// # fn example(session: &mut akunu_engine::Session, prompt: &[u32]) -> Result<(), akunu_engine::EngineError> {
/// match session.restore("talk.session") {
///     Err(EngineError::SavedSession { .. }) => session.feed(prompt).map(drop)?,
///     restored => restored?,
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedSessionError {
    /// The file system refused.
    #[error("the session cannot be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// The device refused, or has no room.
    #[error(transparent)]
    Engine(#[from] Box<EngineError>),
    /// Some other file.
    #[error("this is not a saved session")]
    Foreign,
    /// A file of another version of this program.
    #[error("this session has format version {found}, but {wanted} is needed; save it again")]
    Version {
        /// The version.
        found: u32,
        /// The version that can be read.
        wanted: u32,
    },
    /// The session belongs to another model.
    #[error("this session was saved with another model; load that one first")]
    OtherModel,
    /// The keys and values of the session were computed with other adapters.
    #[error(
        "this session was saved with other adapters, or other scales of them; choose those first"
    )]
    OtherAdapters,
    /// The keys and values of the session are stored in another format.
    #[error(
        "this session has keys and values in {}, and the model was loaded with {}; load it with {} to go on",
        found.name(),
        wanted.name(),
        found.name()
    )]
    OtherFormat {
        /// That of the file.
        found: KvFormat,
        /// That of the model.
        wanted: KvFormat,
    },
    /// The keys and values of the session are stored in 8 bits in an earlier way.
    #[error(
        "this session has keys and values in q8 as an earlier version stored them, which cannot be read any more; \
         read its text again"
    )]
    EarlierFormat,
    /// More tokens than this session's context holds.
    #[error(
        "this session has {needed} tokens, which do not fit a context of {context}; make the context \
         larger"
    )]
    TooLong {
        /// Tokens that the cache must hold.
        needed: u32,
        /// What it holds.
        context: u32,
    },
    /// A file that was cut off or changed.
    #[error("this session is damaged: {why}")]
    Damaged {
        /// What does not fit.
        why: String,
    },
}

impl From<EngineError> for SavedSessionError {
    fn from(error: EngineError) -> SavedSessionError {
        SavedSessionError::Engine(Box::new(error))
    }
}

impl SavedSessionError {
    /// The same with the file that it is about.
    pub(crate) fn of(self, path: &Path) -> EngineError {
        EngineError::SavedSession {
            path: path.to_path_buf(),
            error: self,
        }
    }
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
