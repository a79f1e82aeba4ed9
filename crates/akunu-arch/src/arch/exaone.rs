//! EXAONE 3: Llama whose pairs are halves in GGUF files too, under different names in folders.

use super::prelude::*;

/// EXAONE 3.0 and 3.5.
pub const ARCH: Architecture = Architecture {
    name: "exaone",
    model_types: &["exaone"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("activation_function", "silu")?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(parts.attention(at), ffn, parts.input_norms(at))
    }))
}
