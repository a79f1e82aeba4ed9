//! dots.llm1: Qwen 3 with experts that are chosen by sigmoids and a bias, after some layers without.

use super::prelude::*;

/// dots.llm1.
pub const ARCH: Architecture = Architecture {
    name: "dots1",
    model_types: &["dots1"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Sigmoid,
    normalise: false,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    Ok(parts.decoder(|at| {
        let attention = Attention {
            qk_norm: Some(parts.head_norms(at)),
            ..parts.attention(at)
        };
        let ffn = experts.ffn(at, |experts| experts.with_selection_bias(at));
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}
