//! Command R: both blocks of a layer read the same norm, and all layers have RoPE.

use super::cohere2;
use super::prelude::*;

/// Command R and Aya.
pub const ARCH: Architecture = Architecture {
    name: "command-r",
    model_types: &["cohere"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["use_qk_norm"])?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    if parts.has("layers.0.attention.q_norm.weight") {
        return Err(
            file.unsupported("a norm of each head of queries by mean and variance".to_string())
        );
    }
    let ffn = |at| Ffn::Gated(parts.gated(at, Activation::Silu));
    cohere2::decoder(&parts, |_| true, ffn)
}
