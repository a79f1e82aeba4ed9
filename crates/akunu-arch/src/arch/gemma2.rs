//! Gemma 2: norms after attention and feed-forward, soft caps, every other layer windowed.

use super::gemma;
use crate::descriptor::{ArchDescriptor, WindowPattern};

/// Soft-capped scores and logits; no QK norm.
pub const ARCH: ArchDescriptor = ArchDescriptor {
    name: "gemma2",
    model_types: &["gemma2"],
    has_post_attention_norm: true,
    has_post_ffn_norm: true,
    width_scaled_layers: Some(46),
    has_softcap: true,
    window: WindowPattern::AllButEvery { period: 2 },
    ..gemma::ARCH
};
