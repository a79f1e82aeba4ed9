//! Mellum 2: Qwen 3 with experts, and windows in three of four layers.

use super::prelude::*;
use super::qwen3moe;

/// JetBrains Mellum 2.
pub const ARCH: Architecture = Architecture {
    name: "mellum",
    model_types: &["mellum"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// Of so many layers the last has no window.
const PERIOD: u32 = 4;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["attention_bias"])?;
    let parts = Parts::read(file, WindowPattern::AllButEvery { period: PERIOD }, None)?;
    qwen3moe::decoder(&parts)
}
