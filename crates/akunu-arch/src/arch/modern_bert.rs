//! ModernBERT: norms before each block, rotary positions, a gate, windows, and no biases.

use super::bert;
use crate::descriptor::{Activation, ArchDescriptor, ClassifierHead, RopePairing, WindowPattern};

/// ModernBERT and what was trained from it: gte-modernbert and its reranker, nomic's modernbert-embed, granite-embedding r2.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "modern-bert",
    model_types: &["modernbert"],
    activation: Activation::GeluErfGate,
    has_fused_gate: true,
    has_norm_bias: false,
    norms_inputs: true,
    rope: Some(RopePairing::SplitHalves),
    has_qkv_bias: false,
    has_linear_bias: false,
    window: WindowPattern::AllButFirst { period: 3 },
    window_rope_base: Some(10_000.0),
    classifier_head: ClassifierHead::GeluNorm,
    ..bert::ARCH
};
