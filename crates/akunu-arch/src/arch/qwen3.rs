//! Qwen 3: Llama with a norm on each head of q and k.

use super::prelude::*;

/// No bias, unlike Qwen 2.
pub const ARCH: Architecture = Architecture {
    name: "qwen3",
    model_types: &["qwen3"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

pub(super) fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let attention = Attention {
            qk_norm: Some(parts.head_norms(at)),
            ..parts.attention(at)
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.input_norms(at))
    }))
}
