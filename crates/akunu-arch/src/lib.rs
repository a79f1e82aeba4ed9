#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod active;
mod adapter;
pub mod arch;
mod architecture;
mod bind;
mod check;
mod check_weights;
mod encoder_use;
mod error;
mod ffn;
mod file;
mod images;
mod latent;
mod layer;
mod layer_embeddings;
mod linear;
mod long_rope;
mod model;
mod mtp;
mod norm;
mod parts;
mod relative;
mod rope;
mod speech;
mod state;
pub mod vision;
mod weights;

/// Model files, which descriptions are read from.
#[doc(no_inline)]
pub use akunu_gguf as gguf;

pub use active::ActiveWeights;
pub use adapter::{adapter_rows, check_adapter};
pub use architecture::Architecture;
pub use encoder_use::EncoderUse;
pub use error::ArchError;
pub use ffn::{
    Activation, Dense, DenseActivation, ExpertLinear, ExpertNorms, Experts, Ffn, Gated, Gating,
    Groups, Router, SharedExpert, SharedWeight,
};
pub use file::{Key, ModelFile, WindowPattern};
pub use images::{ImageInput, ImageSight, RopeAxes};
pub use latent::Latent;
pub use layer::{
    Attention, BlockNorms, Both, Cross, HeadNorms, Layer, LayerNorms, Mixer, Norm, NormKind,
    RowNorms, Temperature,
};
pub use layer_embeddings::{LayerEmbeddings, LayerInput};
pub use linear::Linear;
pub use long_rope::LongRope;
pub use model::{
    Classifier, ClassifierHead, Distances, Embedding, Logits, Model, Output, Pooling, Table,
};
pub use mtp::MtpBlock;
pub use parts::{OUTPUT, Parts};
pub use relative::RelativePositions;
pub use rope::{Pairing, Rope, RopeFactors};
pub use speech::{Convolution, SoundEncoder, Speech};
pub use state::{DeltaNet, HeadOrder, ShortConv, Ssd, SsdGate, StateSize, Taps};
pub use vision::Vision;
pub use weights::{Bind, Change, Frames, NamedMatrix, NamedVector, PatchKernel};
