#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod adapter;
mod answer;
mod batch;
mod encoder;
mod error;
mod fingerprint;
mod generation;
mod grammar;
mod graph;
mod guesses;
mod loaded;
mod logprobs;
mod machine;
mod model;
mod options;
mod pool;
mod rule;
mod rules;
mod runtime;
mod sampling;
mod sequence;
mod session;
mod speculation;
pub mod speech;
mod suggested;
mod text;
mod weights;

pub use adapter::{Adapter, Adapters};
pub use akunu_arch::Pooling;
pub use akunu_types::KvFormat;
pub use batch::{Batch, BatchEvent, JoinError, MAX_SEQUENCES, Progress, SequenceId};
pub use encoder::{CutText, Encoder, EncoderText, is_encoder};
pub use error::{Bytes, EngineError, SavedSessionError};
pub use generation::Generation;
pub use grammar::{Grammar, GrammarError, GrammarWalk};
pub use loaded::ModelOptions;
pub use logprobs::TokenLogprobs;
pub use model::Model;
pub use options::{CancelFlag, DRY_BREAKERS, GenerateOptions, Overflow, StopReason, Token};
pub use rule::{MAX_BIASES, MAX_LOGPROBS};
pub use rules::{LogitRule, LogitRules};
pub use runtime::Observed;
pub use sampling::{Sampling, SamplingOptions};
pub use session::{Fed, Reading, Session, SessionOptions, Watch};
pub use speculation::{DraftModel, Lookup, MAX_DRAFT, Speculated, Speculation};
