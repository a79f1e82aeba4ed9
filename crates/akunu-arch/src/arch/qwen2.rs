//! Qwen 2 and 2.5: Llama with a bias on q, k and v.

use super::prelude::*;

/// The window of its config is off in every released model.
pub const ARCH: Architecture = Architecture {
    name: "qwen2",
    model_types: &["qwen2"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

pub(super) fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let attention = parts.attention(at).with_qkv_bias();
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.input_norms(at))
    }))
}
