//! Gemma: GELU gate, norms of `1 + w`, embeddings scaled by `sqrt(dim)`.

use super::prelude::*;

/// Gemma 1.
pub const ARCH: Architecture = Architecture {
    name: "gemma",
    model_types: &["gemma"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = parts(file, WindowPattern::None, None)?;
    Ok(decoder(&parts, |at| {
        let ffn = parts.gated(at, Activation::Gelu);
        Layer::gated(parts.attention(at), ffn, parts.input_norms(at))
    }))
}

/// The parts of all Gemmas. GGUF holds `1 + w` where safetensors hold `w`.
pub(super) fn parts<'a>(
    file: &'a ModelFile<'a>,
    pattern: WindowPattern,
    local_base: Option<f32>,
) -> Result<Parts<'a>, ArchError> {
    let mut parts = Parts::read(file, pattern, local_base)?;
    if file.config().is_some() {
        parts.norm_change = Change::Plus(1.0);
    }
    Ok(parts)
}

/// A decoder with scaled embeddings.
pub(super) fn decoder(parts: &Parts, layer: impl FnMut(usize) -> Layer) -> Model {
    let mut model = parts.decoder(layer);
    model.embedding.scale = Some((parts.dim as f32).sqrt());
    model
}
