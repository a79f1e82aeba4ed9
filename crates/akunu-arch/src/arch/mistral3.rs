//! Ministral 3: Llama with YaRN and a temperature of attention.

use super::prelude::*;

/// Ministral 3, and Mistral Small 3.1 in folders.
pub const ARCH: Architecture = Architecture {
    name: "mistral3",
    model_types: &["mistral3", "ministral3"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::All, None)?;
    let temperature = file.temperature()?;
    Ok(parts.decoder(|at| {
        let attention = Attention {
            temperature,
            ..parts.attention(at)
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.input_norms(at))
    }))
}
