//! Granite with experts: Granite whose feed-forward blocks are mixtures, some with an expert of all tokens.

use super::granite;
use super::prelude::*;

/// Granite 3 A400M and A800M, and those of Granite 4 without recurrent layers.
pub const ARCH: Architecture = Architecture {
    name: "granitemoe",
    model_types: &["granitemoe", "granitemoeshared"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// It is said as a softmax of the chosen logits, which is the same.
pub(super) const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: true,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let (parts, factors) = granite::parts(file)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    Ok(factors.decoder(&parts, |at| {
        let ffn = experts.ffn(at, |experts| experts);
        Layer::new(factors.attention(&parts, at), ffn, parts.input_norms(at))
    }))
}
