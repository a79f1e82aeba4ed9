//! AFMoE: a gate of attention, norms of heads and around both blocks, RoPE only where there is a window, and experts that are chosen by
//! sigmoids and a bias, after some layers without.

use super::prelude::*;

/// Arcee Trinity Nano, Mini and Large.
pub const ARCH: Architecture = Architecture {
    name: "afmoe",
    model_types: &["afmoe"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// Of so many layers the last has no window.
const PERIOD: u32 = 4;
const ROUTING: Routing = Routing {
    gating: Gating::Sigmoid,
    normalise: true,
};
/// Whether embeddings are multiplied by the root of the width. In GGUF files they always are.
const SCALED_EMBEDDINGS: Key = Key::new(&[], &["mup_enabled"]);

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["attention_bias"])?;
    let parts = Parts::read(file, WindowPattern::AllButEvery { period: PERIOD }, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    let mut model = parts.decoder(|at| {
        let plain = parts.attention(at);
        let attention = Attention {
            gate: Some(parts.attention_gate(at)),
            qk_norm: Some(parts.head_norms(at)),
            rope: plain.rope.filter(|_| plain.window.is_some()),
            ..plain
        };
        let ffn = experts.ffn(at, |experts| experts.with_selection_bias(at));
        Layer::new(attention, ffn, parts.sandwich_norms(at))
    });
    let is_scaled = file.config().is_none() || file.bool(SCALED_EMBEDDINGS)? == Some(true);
    model.embedding.scale = is_scaled.then(|| (parts.dim as f32).sqrt());
    Ok(model)
}
