//! nomic-bert: BERT with rotary positions, a gated feed-forward block and no biases.

use super::bert;
use crate::descriptor::{Activation, ArchDescriptor, RopePairing};

/// nomic-embed-text: a BERT with rotary positions and SwiGLU.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "nomic-bert",
    model_types: &["nomic_bert"],
    activation: Activation::SiluGate,
    rope: Some(RopePairing::SplitHalves),
    has_qkv_bias: false,
    has_linear_bias: false,
    ..bert::ARCH
};
