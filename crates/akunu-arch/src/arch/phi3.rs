//! Phi 3: Llama whose queries, keys and values are one matrix, and gate and up another.

use super::prelude::*;

/// Phi-3, Phi-3.5 and Phi-4.
pub const ARCH: Architecture = Architecture {
    name: "phi3",
    model_types: &["phi3"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::All, None)?;
    Ok(parts.decoder(|at| {
        let ffn = parts.fused_gate(at, Activation::Silu);
        Layer::gated(parts.fused_attention(at), ffn, parts.input_norms(at))
    }))
}
