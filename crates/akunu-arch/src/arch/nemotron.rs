//! Nemotron: norms by mean and variance, no gates, the squared ReLU, heads of which a part turns.

use super::glm4moe::half_in_folders;
use super::prelude::*;
use super::starcoder2::decoder;

/// Nemotron 3 and 4, and Minitron.
pub const ARCH: Architecture = Architecture {
    name: "nemotron",
    model_types: &["nemotron"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_act", "relu2")?;
    let mut parts = Parts::read(file, WindowPattern::None, None)?;
    // GGUF holds `1 + w` where folders hold `w`.
    if file.config().is_some() {
        parts.norm_change = Change::Plus(1.0);
    }
    Ok(decoder(&parts, |at| {
        let plain = parts.attention_with_biases_found(at);
        let attention = Attention {
            rope: plain
                .rope
                .map(|rope| half_in_folders(rope, file, plain.head_dim)),
            ..plain
        };
        let ffn = parts.dense_with_biases_found(at, DenseActivation::ReluSquared);
        Layer::new(attention, Ffn::Dense(ffn), parts.input_layer_norms(at))
    }))
}
