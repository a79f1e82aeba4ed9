//! StarCoder 2: norms by mean and variance, no gates, and biases everywhere.

use super::prelude::*;

/// StarCoder 2, 3B to 15B.
pub const ARCH: Architecture = Architecture {
    name: "starcoder2",
    model_types: &["starcoder2"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_act", "gelu_pytorch_tanh")?;
    let parts = Parts::read(file, WindowPattern::All, None)?;
    Ok(decoder(&parts, |at| {
        let attention = parts.attention_with_biases_found(at);
        let ffn = parts.dense_with_biases_found(at, DenseActivation::Gelu);
        Layer::new(attention, Ffn::Dense(ffn), parts.input_layer_norms(at))
    }))
}

/// A decoder whose last norm is by mean and variance, with a bias.
pub(super) fn decoder(parts: &Parts, layer: impl FnMut(usize) -> Layer) -> Model {
    Model {
        norm: Some(parts.layer_norm("output_norm").with_bias()),
        ..parts.decoder(layer)
    }
}
