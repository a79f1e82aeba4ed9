//! From a model file to tokens, on any device.
//!
//! [`Model::load`] opens a file and binds its weights to a device; [`Model::session`] makes a
//! conversation with a KV cache of its own; [`Session::generate`] is an iterator of tokens.
//!
//! ```no_run
//! use akunu_engine::{GenerateOptions, Model, SessionOptions};
//! use akunu_kernels::ChipConfig;
//! use akunu_kernels::twin_device::TwinDevice;
//! use akunu_tokenizer::EncodeOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Box::new(TwinDevice::new(ChipConfig::m1()));
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
#![forbid(unsafe_code)]

mod builder;
mod error;
mod fingerprint;
mod generation;
mod memory;
mod model;
mod sampling;
mod session;
mod text;
mod weights;

pub use error::{Bytes, EngineError};
pub use generation::{CancelFlag, GenerateOptions, Generation, Overflow, StopReason, Token};
pub use model::Model;
pub use sampling::Sampling;
pub use session::{Fed, SavedSessionError, Session, SessionOptions};
