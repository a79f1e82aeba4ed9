//! Gemma: GELU gate, norms of `1 + w`, embeddings scaled by `sqrt(dim)`.

use super::llama;
use crate::descriptor::{Activation, ArchDescriptor, RopePairing, WindowPattern};

/// Gemma 1: Llama with a GELU gate, norms of `1 + w` and scaled embeddings.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "gemma",
    model_types: &["gemma"],
    activation: Activation::GeluGate,
    norm_adds_one: true,
    rope: Some(RopePairing::SplitHalves),
    scales_embedding: true,
    window: WindowPattern::None,
    ..llama::ARCH
};
