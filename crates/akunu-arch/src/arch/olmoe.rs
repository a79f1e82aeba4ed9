//! OLMoE: Llama with experts whose weights are not normalised, and norms of all queries and all keys of a token.

use super::prelude::*;

/// OLMoE-1B-7B.
pub const ARCH: Architecture = Architecture {
    name: "olmoe",
    model_types: &["olmoe"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: false,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    if let Some(limit) = file.f32(Key::new(&["attention.clamp_kqv"], &["clip_qkv"]))? {
        return Err(file.unsupported(format!(
            "queries, keys and values that are clipped at {limit}"
        )));
    }
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    Ok(parts.decoder(|at| {
        let attention = Attention {
            row_norm: Some(parts.row_norms(at)),
            ..parts.attention(at)
        };
        let ffn = experts.ffn(at, |experts| experts);
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}
