//! The names that an architecture's file needs.

pub(super) use crate::architecture::{Architecture, Read};
pub(super) use crate::error::ArchError;
pub(super) use crate::ffn::{Activation, DenseActivation, Experts, Ffn, Gated, Gating};
pub(super) use crate::file::{Key, ModelFile, WindowPattern};
pub(super) use crate::images::{ImageInput, ImageSight};
pub(super) use crate::layer::{
    Attention, BlockNorms, Both, Layer, LayerNorms, Mixer, Norm, NormKind,
};
pub(super) use crate::model::{Distances, Model, Output};
pub(super) use crate::parts::{DeltaSizes, ExpertParts, Parts, Routing};
pub(super) use crate::relative::RelativePositions;
pub(super) use crate::rope::{Pairing, Rope, RopeFactors};
pub(super) use crate::state::Ssd;
pub(super) use crate::weights::{Change, NamedVector};
