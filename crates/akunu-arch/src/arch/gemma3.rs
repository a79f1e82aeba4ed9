//! Gemma 3: QK norm instead of soft caps, five windowed layers to a global one; the rows of an image see all of it.

use super::prelude::*;
use super::{gemma, gemma2};

/// Windowed layers have a RoPE base of their own and no position scaling.
pub const ARCH: Architecture = Architecture {
    name: "gemma3",
    model_types: &["gemma3", "gemma3_text"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// Layers of the 27B model, whose scores are scaled by the model's width.
const WIDTH_SCALED_LAYERS: usize = 62;
const LOCAL_BASE: f32 = 10_000.0;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = gemma::parts(
        file,
        WindowPattern::AllButEvery { period: 6 },
        Some(LOCAL_BASE),
    )?;
    let scale = gemma2::attention_scale(&parts, WIDTH_SCALED_LAYERS)?;
    let decoder = gemma::decoder(&parts, |at| {
        let attention = Attention {
            scale,
            qk_norm: Some(parts.head_norms(at)),
            ..parts.attention(at)
        };
        let ffn = parts.gated(at, Activation::Gelu);
        Layer::gated(attention, ffn, parts.sandwich_norms(at))
    });
    Ok(decoder.with_images(ImageInput {
        sight: ImageSight::Whole,
        ..ImageInput::PLAIN
    }))
}
