//! GLM 4: Llama with biases of q, k and v, of whose heads half turns, and whose gate and up are one matrix.

use super::glm4moe::half_in_folders;
use super::prelude::*;

/// GLM-4-9B of 2024.
pub const ARCH: Architecture = Architecture {
    name: "chatglm",
    model_types: &["glm"],
    pairing: Pairing::Interleaved,
    read: Read::Text(|file| model(file, |parts, at| parts.input_norms(at))),
};

/// A GLM whose layers have these norms.
pub(super) fn model(
    file: &ModelFile,
    norms: impl Fn(&Parts, usize) -> LayerNorms,
) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let plain = parts.attention_with_biases_found(at);
        let turn = |rope: Rope| half_in_folders(rope.interleaved(), file, plain.head_dim);
        let attention = Attention {
            // Folders have its weights interleaved too.
            rope: plain.rope.map(turn),
            ..plain
        };
        let ffn = parts.fused_gate(at, Activation::Silu);
        Layer::gated(attention, ffn, norms(&parts, at))
    }))
}
