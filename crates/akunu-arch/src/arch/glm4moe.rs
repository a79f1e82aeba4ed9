//! GLM 4.5 with experts: heads of which half turns, experts that are chosen by sigmoids and a bias, after some layers without.

use super::prelude::*;

/// GLM-4.5, 4.6 and 4.5-Air.
pub const ARCH: Architecture = Architecture {
    name: "glm4moe",
    model_types: &["glm4_moe"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let routing = Routing {
        gating: Gating::Sigmoid,
        normalise: file.config().is_some(),
    };
    let experts = ExpertParts::read(&parts, routing)?;
    Ok(parts.with_mtp(parts.decoder(|at| {
        let plain = parts.attention_with_biases_found(at);
        let attention = Attention {
            qk_norm: parts.head_norms_found(at),
            rope: plain
                .rope
                .map(|rope| half_in_folders(rope, file, plain.head_dim)),
            ..plain
        };
        let ffn = experts.ffn(at, |experts| experts.with_selection_bias(at));
        Layer::new(attention, ffn, parts.input_norms_after_attention(at))
    })))
}

/// Half a head turns in folders that do not say it.
pub(super) fn half_in_folders(rope: Rope, file: &ModelFile, head_dim: u32) -> Rope {
    let half = file.config().map(|_| head_dim / 2);
    Rope {
        turned_dim: rope.turned_dim.or(half),
        ..rope
    }
}
