//! Muse Glimmer: normalised embeddings and heads without weights of these norms, a gate of attention, norms around both blocks, and
//! RoPE only where there is a window.

use serde_json::Value;

use super::prelude::*;
use crate::layer::HeadNorms;

/// Muse Glimmer 30B, its text alone.
pub const ARCH: Architecture = Architecture {
    name: "muse-glimmer",
    model_types: &["muse_glimmer", "muse_glimmer_text"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// Of so many layers the last has no window.
const PERIOD: u32 = 4;
const LOGITS: Key = Key::new(&["logit_scale"], &["output_multiplier"]);
const SOFTCAP: Key = Key::same(&["final_logit_softcapping"]);
/// Factor of normalised queries. GGUF files have it as the weights of a norm.
const QUERY_FACTOR: Key = Key::new(&[], &["qk_scale_factor"]);
const USUAL_QUERY_FACTOR: f32 = 3.87;
/// Epsilon of the norms of the blocks' results. GGUF files do not have it.
const OUTPUT_EPS: Key = Key::new(&[], &["post_norm_eps"]);
const USUAL_OUTPUT_EPS: f32 = 1e-8;
/// The base of each layer, 0 for none, in folders.
const LAYER_BASES: &str = "layer_rope_theta";

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_activation", "silu")?;
    file.never(&["attention_bias"])?;
    let mut parts = Parts::read(file, WindowPattern::AllButEvery { period: PERIOD }, None)?;
    if file.config().is_some() {
        parts.norm_change = Change::Plus(1.0);
    }
    let query_factor = file.f32(QUERY_FACTOR)?.unwrap_or(USUAL_QUERY_FACTOR);
    let output_eps = file.f32(OUTPUT_EPS)?.unwrap_or(USUAL_OUTPUT_EPS);
    file.check_positive("epsilon of norms of results", output_eps)?;
    let bases = layer_bases(file, parts.n_layers)?;
    let mut model = parts.decoder(|at| {
        let plain = parts.attention(at);
        let rope = match &bases {
            Some(bases) => {
                let theta = bases[at];
                plain
                    .rope
                    .filter(|_| theta != 0.0)
                    .map(|rope| Rope { theta, ..rope })
            }
            None => plain.rope.filter(|_| plain.window.is_some()),
        };
        let qk_norm = match file.config() {
            Some(_) => HeadNorms {
                q: NamedVector::constant(query_factor, plain.head_dim),
                k: NamedVector::constant(1.0, plain.head_dim),
                eps: parts.eps,
                turn_first: false,
            },
            None => parts.head_norms(at),
        };
        let attention = Attention {
            gate: Some(parts.attention_gate(at)),
            qk_norm: Some(qk_norm),
            rope,
            ..plain
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, norms(&parts, at, output_eps))
    });
    let LayerNorms { mixer, .. } = parts.input_norms(0);
    model.embedding.norm = mixer.input.map(|norm| Norm {
        weight: NamedVector::constant(1.0, parts.dim),
        ..norm
    });
    model.norm = model.norm.map(|norm| Norm {
        weight: NamedVector {
            change: Change::None,
            ..norm.weight
        },
        ..norm
    });
    if let Output::Logits(logits) = &mut model.output {
        logits.scale = file.f32(LOGITS)?;
        logits.softcap = file.f32(SOFTCAP)?.filter(|&cap| cap != 0.0);
    }
    Ok(model)
}

/// Norms around both blocks, with a different epsilon for their results.
fn norms(parts: &Parts, at: usize, eps: f32) -> LayerNorms {
    let of = |norms: BlockNorms| BlockNorms {
        output: norms.output.map(|norm| Norm { eps, ..norm }),
        ..norms
    };
    let LayerNorms { mixer, ffn } = parts.sandwich_norms(at);
    LayerNorms {
        mixer: of(mixer),
        ffn: of(ffn),
    }
}

/// The base of each layer, if a folder has a list of them.
fn layer_bases(file: &ModelFile, n_layers: usize) -> Result<Option<Vec<f32>>, ArchError> {
    let config = file.config();
    let Some(list) = config.and_then(|config| config.get(LAYER_BASES)?.as_array()) else {
        return Ok(None);
    };
    let number = |value: &Value| value.as_f64().map(|base| base as f32);
    let bases: Option<Vec<f32>> = list.iter().map(number).collect();
    match bases.filter(|bases| bases.len() == n_layers) {
        Some(bases) => Ok(Some(bases)),
        None => {
            let found = format!("a list of {} for {n_layers} layers", list.len());
            Err(file.invalid(LAYER_BASES, found, "a number for each layer"))
        }
    }
}
