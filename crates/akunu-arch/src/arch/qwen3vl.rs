//! Qwen3-VL: Qwen 3 whose heads turn by three axes where there are images, with further features after its first layers.

use super::prelude::*;
use super::qwen3;

/// The language model. The pairs of the three axes take turns.
pub const ARCH: Architecture = Architecture {
    name: "qwen3vl",
    model_types: &["qwen3_vl", "qwen3_vl_text"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let model = qwen3::model(file)?;
    let deep_layers = file.deep_layers(model.layers.len())?;
    Ok(model.with_images(ImageInput {
        axes: Some(file.required_rope_axes(true)?),
        deep_layers,
        ..ImageInput::PLAIN
    }))
}
