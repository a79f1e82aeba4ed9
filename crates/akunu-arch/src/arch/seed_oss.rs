//! Seed-OSS: Llama with a bias on q, k and v.

use super::prelude::*;

/// Seed-OSS-36B.
pub const ARCH: Architecture = Architecture {
    name: "seed_oss",
    model_types: &["seed_oss"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let attention = parts.attention_with_biases_found(at);
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.input_norms_after_attention(at))
    }))
}
