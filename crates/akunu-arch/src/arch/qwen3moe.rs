//! Qwen 3 with experts: Qwen 3 whose feed-forward blocks are mixtures.

use super::prelude::*;

/// Qwen3-30B-A3B, Qwen3-Coder and 235B.
pub const ARCH: Architecture = Architecture {
    name: "qwen3moe",
    model_types: &["qwen3_moe"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    decoder(&parts)
}

/// A decoder of these parts.
pub(super) fn decoder(parts: &Parts) -> Result<Model, ArchError> {
    let file = parts.file;
    let routing = Routing {
        gating: Gating::Softmax,
        // Converters do not say it, and a folder that does not has weights that are not.
        normalise: file.config().is_none(),
    };
    let experts = ExpertParts::read(parts, routing)?;
    Ok(parts.decoder(|at| {
        let attention = Attention {
            qk_norm: Some(parts.head_norms(at)),
            ..parts.attention(at)
        };
        let ffn = experts.ffn(at, |experts| experts);
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}
