//! ERNIE 4.5 without experts: Llama whose folders have interleaved pairs too.

use super::prelude::*;

/// ERNIE-4.5-0.3B.
pub const ARCH: Architecture = Architecture {
    name: "ernie4_5",
    model_types: &["ernie4_5"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let plain = parts.attention(at);
        let attention = Attention {
            rope: plain.rope.map(Rope::interleaved),
            ..plain
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.input_norms(at))
    }))
}
