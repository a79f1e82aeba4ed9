//! StableLM: norms by mean and variance, and heads of which a part turns.

use super::prelude::*;
use super::starcoder2::decoder;

/// StableLM 2 1.6B and 3B.
pub const ARCH: Architecture = Architecture {
    name: "stablelm",
    model_types: &["stablelm"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// The share of a head that turns in folders that do not say it.
const TURNED_SHARE: f32 = 0.25;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_act", "silu")?;
    file.never(&["qk_layernorm"])?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    if parts.has("layers.0.attention.q_norm.weight") {
        return Err(
            file.unsupported("a norm of each head of queries by mean and variance".to_string())
        );
    }
    // Without a second norm, both blocks of a layer read the same.
    let is_parallel = !parts.has("layers.0.ffn_norm.weight");
    Ok(decoder(&parts, |at| {
        let plain = parts.attention_with_biases_found(at);
        let share = file
            .config()
            .map(|_| (plain.head_dim as f32 * TURNED_SHARE) as u32);
        let attention = Attention {
            rope: plain.rope.map(|rope| Rope {
                turned_dim: rope.turned_dim.or(share),
                ..rope
            }),
            ..plain
        };
        let ffn = parts.gated(at, Activation::Silu);
        let LayerNorms { mixer, ffn: own } = parts.input_layer_norms(at);
        match is_parallel {
            true => {
                let ffn_norms = BlockNorms::NONE;
                let norms = LayerNorms {
                    mixer,
                    ffn: ffn_norms,
                };
                Layer::gated(attention, ffn, norms).parallel()
            }
            false => Layer::gated(attention, ffn, LayerNorms { mixer, ffn: own }),
        }
    }))
}
