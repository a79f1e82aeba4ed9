//! LFM2: short convolutions, and attention in every few layers.

use super::prelude::*;

/// LFM2 and LFM2.5, 230M to 2.6B, and the language model of LFM2-VL.
pub const ARCH: Architecture = Architecture {
    name: "lfm2",
    model_types: &["lfm2", "lfm2_vl"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const TAPS: Key = Key::new(&["shortconv.l_cache"], &["conv_L_cache"]);
const BIAS: Key = Key::new(&[], &["conv_bias"]);

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let mut parts = Parts::read(file, WindowPattern::None, None)?;
    if file.config().is_some() {
        // `intermediate_size` is what the width is computed from, by four rules; the weights have it.
        parts.ffn.fill(file.rows("layers.0.ffn.gate.weight"));
    }
    let mixers = Mixers::read(&parts)?;
    let model = parts.decoder(|at| {
        let ffn = Ffn::Gated(parts.gated(at, Activation::Silu));
        mixers.layer(&parts, at, ffn)
    });
    Ok(output_norm(&parts, model).with_images(ImageInput::PLAIN))
}

/// The same model with a norm of the last layer's result, which its files name as if it were that of the embedding.
pub(super) fn output_norm(parts: &Parts, model: Model) -> Model {
    Model {
        norm: Some(parts.norm("token_embedding_norm")),
        ..model
    }
}

/// The mixers of all layers.
pub(super) struct Mixers {
    has_attention: Vec<bool>,
    taps: u32,
    has_biases: bool,
}

impl Mixers {
    pub fn read(parts: &Parts) -> Result<Mixers, ArchError> {
        Ok(Mixers {
            has_attention: parts.attention_layers(|at| Ok(parts.kv_heads[at] > 0))?,
            taps: parts.taps(TAPS)?,
            has_biases: parts.file.bool(BIAS)? == Some(true),
        })
    }

    /// A layer with this feed-forward block.
    pub fn layer(&self, parts: &Parts, at: usize, ffn: Ffn) -> Layer {
        let attention = Attention {
            qk_norm: Some(parts.head_norms(at)),
            ..parts.attention(at)
        };
        let layer = Layer::new(attention, ffn, parts.input_norms(at));
        if self.has_attention[at] {
            return layer;
        }
        let conv = parts.short_conv(at, self.taps);
        layer.with_mixer(Mixer::ShortConv(match self.has_biases {
            true => conv.with_biases(),
            false => conv,
        }))
    }
}
