#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod adapter;
pub mod arch;
mod config;
mod descriptor;
mod encoder_use;
mod error;
mod relative;
mod rope;
mod speech;
mod weights;

pub use adapter::{adapter_rows, check_adapter};
pub use config::{LayerConfig, ModelConfig};
pub use descriptor::{
    Activation, ArchDescriptor, ClassifierHead, Norm, Role, RopePairing, WindowPattern,
};
pub use encoder_use::{EncoderUse, Pooling};
pub use error::ArchError;
pub use relative::RelativePositions;
pub use rope::{RopeConfig, RopeFactors};
pub use speech::SpeechConfig;
pub use weights::{WeightShape, weight_shapes};
