#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod channels;
mod chat;
mod device;
mod embedder;
mod error;
mod error_kind;
#[cfg(feature = "fetch")]
mod fetch;
mod history;
#[cfg(feature = "images")]
mod images;
mod model;
mod reply;
mod reranker;
mod sampling;
#[cfg(feature = "async")]
mod stream;
mod together;
#[cfg(feature = "speech")]
mod transcriber;
mod turns;
mod window;

#[cfg(feature = "speech")]
pub use akunu_audio::{AudioError, AudioProblem, AudioReader};
pub use akunu_cpu::{CpuError, CpuOptions, Isa};
/// The engine's own model, which [`Session::model`] returns.
#[doc(no_inline)]
pub use akunu_engine::Model as EngineModel;
/// Why a file of weights cannot be opened.
///
/// ```no_run
/// use akunu::{EngineError, Error, Model, StoreError};
///
/// match Model::open("model.gguf") {
///     Err(Error::Engine(EngineError::Store(error))) => eprintln!("{error}"),
///     other => drop(other?),
/// }
/// # fn same(error: StoreError) -> EngineError { error.into() }
/// # Ok::<(), akunu::Error>(())
/// ```
pub use akunu_engine::StoreError;
/// Architectures: `akunu-arch`, with which [`ModelOptions::architecture`] describes models that are not known here.
#[doc(no_inline)]
pub use akunu_engine::arch;
/// Why a model's description is not one of a model that can be run.
///
/// ```no_run
/// use akunu::{EngineError, Error, Model};
///
/// if let Err(Error::Engine(EngineError::Arch(error))) = Model::open("model.gguf") {
///     eprintln!("{error}");
/// }
/// ```
pub use akunu_engine::arch::ArchError;
pub use akunu_engine::arch::Architecture;
/// The layers of a model, as data.
///
/// ```no_run
/// let model = akunu::Model::open("model.gguf")?;
/// let config: &akunu::ModelConfig = model.config();
/// println!("{}: {} layers, vectors of {}", config.arch, config.layers.len(), config.dim);
/// # Ok::<(), akunu::Error>(())
/// ```
#[doc(inline)]
pub use akunu_engine::arch::Model as ModelConfig;
/// Which of a text's vectors an [`Encoder`] returns.
///
/// ```no_run
/// # fn example(encoder: &akunu::Encoder) {
/// let is_mean = encoder.pooling() == akunu::Pooling::Mean;
/// # let _ = is_mean;
/// # }
/// ```
pub use akunu_engine::arch::Pooling;
/// Programs and devices: `akunu-program`, for a [`CustomDevice`].
#[doc(no_inline)]
pub use akunu_engine::program;
#[cfg(feature = "speech")]
pub use akunu_engine::speech::{SpeechModel, Word, is_speech};
pub use akunu_engine::{
    Adapter, Adapters, Batch, BatchEvent, CacheOptions, CancelFlag, DRY_BREAKERS, DeviceError,
    DraftModel, Encoder, EngineError, Fed, GenerateOptions, Generation, Grammar, GrammarError,
    GrammarWalk, JoinError, KvFormat, LOOP_WINDOW, Loading, LogitRule, LogitRules, Lookup,
    MAX_BIASES, MAX_DRAFT, MAX_LOGPROBS, MAX_SEQUENCES, ModelOptions, Mtp, Overflow, Progress,
    Reading, Sampling, SamplingOptions, SavedSessionError, SequenceId, Session, SessionOptions,
    Speculated, Speculation, StopReason, Token, TokenLogprobs, Watch, is_encoder,
};
#[cfg(feature = "fetch")]
pub use akunu_fetch::FetchError;
#[cfg(feature = "images")]
pub use akunu_image::{
    ConfigError, Limits, Picture, PictureError, PictureProblem, Size, decode_base64,
    decode_data_url,
};
/// The trait of devices, for [`Device::Custom`].
pub use akunu_program::Device as CustomDevice;
pub use akunu_tokenizer::{
    ChatTemplate, EncodeOptions, Message, PromptPart, RenderOptions, TemplateError, Tokenizer,
    TokenizerError,
};
pub use chat::{Chat, ChatOptions};
pub use device::Device;
pub use embedder::{EmbedOptions, Embedder, Embedding};
pub use error::Error;
pub use error_kind::ErrorKind;
#[cfg(feature = "fetch")]
pub use fetch::fetch;
#[cfg(feature = "images")]
pub use images::{Image, Vision};
pub use model::Model;
pub use reply::{Reply, ReplyStats};
pub use reranker::{Ranking, Reranker};
pub use sampling::{careful_sampling, chat_sampling, random_seed};
#[cfg(feature = "async")]
pub use stream::{ChatBack, ReplyStream};
pub use together::Answered;
#[cfg(feature = "speech")]
pub use transcriber::{Cue, Segment, TranscribeOptions, Transcriber, Transcription};
