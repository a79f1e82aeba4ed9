//! What kinds of models there are, as data.
//!
//! * [`ArchDescriptor`]: what one architecture does differently: its activation, norms, RoPE pairing,
//!   windows. One file an architecture; a new one is a copy of another with some fields changed.
//! * [`ModelConfig`]: the shape of one model, read from GGUF metadata or `config.json`.
//!
//! The engine reads these fields and never asks for a name. A model that needs something we do not
//! have is refused by the name of what is missing.
//!
//! ```no_run
//! use akunu_arch::ModelConfig;
//! use akunu_gguf::WeightStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = WeightStore::open("model.gguf")?;
//! let config = ModelConfig::from_store(&store)?;
//! println!("{}: {} layers of {}", config.arch.name, config.layers.len(), config.dim);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod arch;
mod config;
mod descriptor;
mod error;
mod rope;
mod weights;

pub use config::{LayerConfig, ModelConfig};
pub use descriptor::{Activation, ArchDescriptor, Norm, Role, RopePairing, WindowPattern};
pub use error::ArchError;
pub use rope::{RopeConfig, RopeFactors};
pub use weights::{WeightShape, weight_shapes};
