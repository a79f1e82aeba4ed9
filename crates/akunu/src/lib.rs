#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chat;
mod device;
mod embedder;
mod error;
mod error_kind;
#[cfg(feature = "fetch")]
mod fetch;
mod history;
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
#[cfg(feature = "speech")]
pub use akunu_engine::speech::{SpeechModel, Word, is_speech};
pub use akunu_engine::{
    Adapter, Adapters, Batch, BatchEvent, CancelFlag, DRY_BREAKERS, DraftModel, Encoder,
    EngineError, Fed, GenerateOptions, Generation, Grammar, GrammarError, GrammarWalk, JoinError,
    KvFormat, LOOP_WINDOW, Loading, LogitRule, LogitRules, Lookup, MAX_BIASES, MAX_DRAFT,
    MAX_LOGPROBS, MAX_SEQUENCES, ModelOptions, Overflow, Progress, Reading, Sampling,
    SamplingOptions, SequenceId, Session, SessionOptions, Speculated, Speculation, StopReason,
    Token, TokenLogprobs, Watch, is_encoder,
};
pub use akunu_tokenizer::{
    EncodeOptions, Message, PromptPart, RenderOptions, TemplateError, Tokenizer, TokenizerError,
};
pub use chat::{Chat, ChatOptions};
pub use device::Device;
pub use embedder::{EmbedOptions, Embedder, Embedding};
pub use error::Error;
pub use error_kind::ErrorKind;
#[cfg(feature = "fetch")]
pub use fetch::fetch;
pub use model::Model;
pub use reply::{Reply, ReplyStats};
pub use reranker::{Ranking, Reranker};
pub use sampling::{careful_sampling, chat_sampling, random_seed};
#[cfg(feature = "async")]
pub use stream::{ChatBack, ReplyStream};
pub use together::Answered;
#[cfg(feature = "speech")]
pub use transcriber::{Cue, Segment, TranscribeOptions, Transcriber, Transcription};
