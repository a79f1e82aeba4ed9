//! nomic-bert: BERT with rotary positions, a gated feed-forward block and no biases.

use super::bert;
use super::prelude::*;

/// nomic-embed-text: a BERT with rotary positions and SwiGLU.
pub const ARCH: Architecture = Architecture {
    name: "nomic-bert",
    model_types: &["nomic_bert"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("activation_function", "swiglu")?;
    refuse_variants(file)?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let norm = parts.layer_norm("token_embedding_norm").with_bias();
    let layer = |at| {
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(parts.fused_attention(at), ffn, parts.sum_norms(at))
    };
    Ok(parts.encoder(
        parts.text_embedding(0, norm),
        layer,
        parts.tanh_classifier(),
    ))
}

/// Refuses variants that we do not have of an encoder with RoPE and without biases.
pub(super) fn refuse_variants(file: &ModelFile) -> Result<(), ArchError> {
    file.only("position_embedding_type", "absolute")?;
    file.never(&bert::NEVER)?;
    file.never(&["norm_bias", "attention_bias", "mlp_bias"])?;
    let key = "rotary_emb_fraction";
    let turned = match file.config() {
        Some(config) => config.f32(key)?.unwrap_or(1.0),
        None => 1.0,
    };
    match turned {
        1.0 => Ok(()),
        _ => Err(file.unsupported(format!("`{key}` = {turned}"))),
    }
}
