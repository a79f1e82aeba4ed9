//! Qwen 2 with experts: Qwen 2 whose feed-forward blocks are mixtures, with an expert of all tokens that has a gate.

use super::prelude::*;

/// Qwen1.5-MoE-A2.7B and Qwen2-57B-A14B.
pub const ARCH: Architecture = Architecture {
    name: "qwen2moe",
    model_types: &["qwen2_moe"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: false,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    Ok(parts.decoder(|at| {
        let attention = parts.attention(at).with_qkv_bias();
        let ffn = experts.ffn(at, |experts| experts.with_shared_gate(at, parts.dim));
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}
