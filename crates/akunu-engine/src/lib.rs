//! From a model file to tokens, on any device.
//!
//! [`Model::load`] opens a file and binds its weights to a device; [`Model::session`] makes a
//! conversation; [`Session::generate`] is an iterator of tokens.
//!
//! ```no_run
//! use akunu_engine::{GenerateOptions, Model, SessionOptions};
//! use akunu_kernels::twin_device::TwinDevice;
//! use akunu_tokenizer::EncodeOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Box::new(TwinDevice::new());
//! let model = Model::load("model.gguf", device)?;
//! let mut session = model.session(SessionOptions::default())?;
//!
//! let options = EncodeOptions { add_special: true, parse_special: false };
//! session.feed(&model.tokenizer().encode("The capital of France is", options)?)?;
//! for token in session.generate(GenerateOptions { max_tokens: 8, ..Default::default() })? {
//!     print!("{}", token?.text);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Model::batch`] decodes several sessions at once, each weight read once for all of them:
//!
//! ```no_run
//! # use akunu_engine::{EngineError, GenerateOptions, Model, Progress, SessionOptions};
//! # fn serve(model: &Model, prompts: &[Vec<u32>]) -> Result<(), EngineError> {
//! let mut batch = model.batch(8)?;
//! for prompt in prompts.iter().take(8) {
//!     let session = model.session(SessionOptions::default())?;
//!     batch.join_prompt(session, prompt, GenerateOptions::default())?;
//! }
//! while batch.is_running() {
//!     for event in batch.step() {
//!         match event.progress {
//!             Progress::Token(token) => println!("{:?}: {}", event.sequence, token.text),
//!             Progress::Ended { .. } => drop(batch.leave(event.sequence)),
//!             Progress::Failed(error) => eprintln!("{:?}: {error}", event.sequence),
//!             Progress::Read(_) => {}
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod answer;
mod batch;
mod error;
mod fingerprint;
mod generation;
mod grammar;
mod graph;
mod loaded;
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
mod suggested;
mod text;
mod weights;

pub use akunu_types::KvFormat;
pub use batch::{Batch, BatchEvent, JoinError, MAX_SEQUENCES, Progress, SequenceId};
pub use error::{Bytes, EngineError, SavedSessionError};
pub use generation::Generation;
pub use grammar::{Grammar, GrammarError};
pub use model::Model;
pub use options::{
    CancelFlag, DRY_BREAKERS, GenerateOptions, ModelOptions, Overflow, StopReason, Token,
    TokenLogprobs,
};
pub use rule::{MAX_BIASES, MAX_LOGPROBS};
pub use rules::{LogitRule, LogitRules};
pub use runtime::Observed;
pub use sampling::Sampling;
pub use session::{Fed, Reading, Session, SessionOptions, Watch};
pub use speculation::{DraftModel, Lookup, MAX_DRAFT, Speculated, Speculation};
pub use suggested::SuggestedSampling;
