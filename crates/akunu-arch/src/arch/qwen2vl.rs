//! Qwen2-VL and Qwen2.5-VL: Qwen 2 whose heads turn by three axes where there are images.

use super::prelude::*;
use super::qwen2;

/// The language model. Its first pairs turn by time, those behind them by height and the last ones by width.
pub const ARCH: Architecture = Architecture {
    name: "qwen2vl",
    model_types: &["qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    Ok(qwen2::model(file)?.with_images(ImageInput {
        axes: Some(file.required_rope_axes(false)?),
        ..ImageInput::PLAIN
    }))
}
