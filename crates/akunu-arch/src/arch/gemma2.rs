//! Gemma 2: norms after attention and feed-forward, soft caps, every other layer windowed.

use super::gemma;
use super::prelude::*;

/// Gemma 1 with sandwich norms, windows and soft caps of scores and logits.
pub const ARCH: Architecture = Architecture {
    name: "gemma2",
    model_types: &["gemma2"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const SOFTCAP: Key = Key::same(&["attn_logit_softcapping"]);
const FINAL_SOFTCAP: Key = Key::same(&["final_logit_softcapping"]);
/// Layers of the 27B model, whose scores are scaled by the model's width.
const WIDTH_SCALED_LAYERS: usize = 46;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = gemma::parts(file, WindowPattern::AllButEvery { period: 2 }, None)?;
    let scale = attention_scale(&parts, WIDTH_SCALED_LAYERS)?;
    let softcap = file.f32(SOFTCAP)?;
    let mut model = gemma::decoder(&parts, |at| {
        let attention = Attention {
            scale,
            softcap,
            ..parts.attention(at)
        };
        let ffn = parts.gated(at, Activation::Gelu);
        Layer::gated(attention, ffn, parts.sandwich_norms(at))
    });
    if let Output::Logits(logits) = &mut model.output {
        logits.softcap = file.f32(FINAL_SOFTCAP)?;
    }
    Ok(model)
}

/// The factor of the scores. In `config.json` it is a number; a GGUF file does not say it, but the only models that scale by
/// their width are known by their layers.
pub(super) fn attention_scale(parts: &Parts, width_scaled: usize) -> Result<f32, ArchError> {
    let said = match parts.file.config() {
        Some(config) => config.f32("query_pre_attn_scalar")?,
        None => (parts.n_layers == width_scaled).then(|| parts.dim as f32 / parts.heads[0] as f32),
    };
    Ok(1.0 / said.unwrap_or(parts.head_dim as f32).sqrt())
}
