//! Arcee: Llama without gates, and with the squared ReLU.

use super::prelude::*;

/// AFM-4.5B.
pub const ARCH: Architecture = Architecture {
    name: "arcee",
    model_types: &["arcee"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_act", "relu2")?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let ffn = Ffn::Dense(parts.dense(at, DenseActivation::ReluSquared));
        Layer::new(parts.attention(at), ffn, parts.input_norms(at))
    }))
}
