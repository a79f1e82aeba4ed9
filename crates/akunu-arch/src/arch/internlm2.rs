//! InternLM 2: Llama; in folders q, k and v are one matrix, in which the heads of a key head lie together.

use super::prelude::*;

/// InternLM 2 and 2.5.
pub const ARCH: Architecture = Architecture {
    name: "internlm2",
    model_types: &["internlm2"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let attention = match file.config() {
            Some(_) => parts.grouped_attention(at),
            None => parts.attention(at),
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.input_norms(at))
    }))
}
