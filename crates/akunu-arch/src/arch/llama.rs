//! Llama 2 and 3, Mistral, SmolLM2, TinyLlama and many others.

use super::prelude::*;

/// The plain decoder.
pub const ARCH: Architecture = Architecture {
    name: "llama",
    model_types: &["llama", "mistral"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::All, None)?;
    Ok(parts.decoder(|at| {
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(parts.attention(at), ffn, parts.input_norms(at))
    }))
}
