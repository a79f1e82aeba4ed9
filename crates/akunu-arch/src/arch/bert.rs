//! BERT: an encoder with learned positions and a norm after each block.

use super::prelude::*;

/// BERT itself, MiniLM, BGE, E5, GTE.
pub const ARCH: Architecture = Architecture {
    name: "bert",
    model_types: &["bert"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(|file| model(file, 0)),
};

/// Variants that we do not have.
pub(super) const NEVER: [&str; 3] = ["prenorm", "use_rms_norm", "rotary_emb_interleaved"];

/// A BERT whose table of positions has its first one at this entry.
pub(super) fn model(file: &ModelFile, first_position: u32) -> Result<Model, ArchError> {
    file.only("hidden_act", "gelu")?;
    file.only("position_embedding_type", "absolute")?;
    file.never(&NEVER)?;
    let mut parts = Parts::read(file, WindowPattern::None, None)?;
    if file.config().is_some() {
        parts.context_length = parts.context_length.saturating_sub(first_position);
    }
    let norm = parts.layer_norm("token_embedding_norm").with_bias();
    let embedding = parts.text_embedding(first_position, norm);
    let layer = |at| {
        let ffn = Ffn::Dense(parts.biased_dense(at));
        Layer::new(parts.biased_attention(at), ffn, parts.sum_norms(at))
    };
    Ok(parts.encoder(embedding, layer, parts.tanh_classifier()))
}
