//! Qwen 3.5: a delta rule, and attention with a gate in every fourth layer.

use super::prelude::*;

/// Qwen3.5, 3.6 and 3.8, 0.8B to 27B.
pub const ARCH: Architecture = Architecture {
    name: "qwen35",
    model_types: &["qwen3_5", "qwen3_5_text"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// Layers up to the next one with attention, where `config.json` does not say the type of each.
const INTERVAL: Key = Key::same(&["full_attention_interval"]);

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = parts(file)?;
    let mixers = Mixers::read(&parts)?;
    let decoder = parts.with_mtp(parts.decoder(|at| {
        let ffn = Ffn::Gated(parts.gated(at, Activation::Silu));
        mixers.layer(&parts, at, ffn)
    }));
    with_images(file, decoder)
}

/// The same model, which reads images if its file has the axes of their positions.
pub(super) fn with_images(file: &ModelFile, model: Model) -> Result<Model, ArchError> {
    Ok(match file.rope_axes(true)? {
        None => model,
        axes => model.with_images(ImageInput {
            axes,
            ..ImageInput::PLAIN
        }),
    })
}

/// The parts of a model, whose folders have norms less 1.
pub(super) fn parts<'a>(file: &'a ModelFile) -> Result<Parts<'a>, ArchError> {
    let mut parts = Parts::read(file, WindowPattern::None, None)?;
    if file.config().is_some() {
        parts.norm_change = Change::Plus(1.0);
    }
    Ok(parts)
}

/// The mixers of all layers.
pub(super) struct Mixers {
    has_attention: Vec<bool>,
    sizes: DeltaSizes,
}

impl Mixers {
    pub fn read(parts: &Parts) -> Result<Mixers, ArchError> {
        let interval = parts.file.u32(INTERVAL)?.unwrap_or(4).max(1) as usize;
        Ok(Mixers {
            has_attention: parts.attention_layers(|at| Ok((at + 1).is_multiple_of(interval)))?,
            sizes: parts.delta_sizes()?,
        })
    }

    /// A layer with this feed-forward block.
    pub fn layer(&self, parts: &Parts, at: usize, ffn: Ffn) -> Layer {
        let attention = Attention {
            qk_norm: Some(parts.head_norms(at)),
            ..parts.attention(at).with_gate()
        };
        let norms = parts.input_norms_after_attention(at);
        let layer = Layer::new(attention, ffn, norms);
        match self.has_attention[at] {
            true => layer,
            false => layer.with_mixer(Mixer::DeltaNet(parts.delta_net(at, &self.sizes))),
        }
    }
}
