//! Nemotron-H: each layer is Mamba-2, attention without positions, or a feed-forward block, and nothing else.

use super::prelude::*;
use crate::file::keys::LAYER_KINDS;

/// Nemotron-H 4B to 56B and Nemotron Nano 2.
pub const ARCH: Architecture = Architecture {
    name: "nemotron_h",
    model_types: &["nemotron_h"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

/// A letter for each layer, in older folders.
const PATTERN: &str = "hybrid_override_pattern";

/// What a layer is.
#[derive(Clone, Copy)]
enum Kind {
    Ssd,
    Attention,
    Ffn,
}

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["use_bias", "mamba_proj_bias", "mlp_bias", "attention_bias"])?;
    file.only("mlp_hidden_act", "relu2")?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let kinds = kinds(&parts)?;
    let sizes = parts.ssd_sizes()?;
    Ok(parts.decoder(|at| {
        let norms = parts.only_norm(at);
        match kinds[at] {
            Kind::Ssd => Layer::of_mixer(Mixer::Ssd(parts.ssd(at, &sizes)), norms),
            Kind::Attention => {
                let attention = Attention {
                    rope: None,
                    ..parts.attention(at)
                };
                Layer::of_mixer(Mixer::Attention(attention), norms)
            }
            Kind::Ffn => Layer::of_ffn(
                Ffn::Dense(parts.dense(at, DenseActivation::ReluSquared)),
                norms,
            ),
        }
    }))
}

/// What each layer is: folders say it, and GGUF files have widths and heads only where there are such blocks.
fn kinds(parts: &Parts) -> Result<Vec<Kind>, ArchError> {
    let file = parts.file;
    let Some(config) = file.config() else {
        let kind = |at: usize| match (parts.ffn[at], parts.kv_heads[at]) {
            (0, 0) => Kind::Ssd,
            (0, _) => Kind::Attention,
            _ => Kind::Ffn,
        };
        return Ok((0..parts.n_layers).map(kind).collect());
    };
    let names: Vec<String> = match config.string(PATTERN)? {
        Some(letters) => letters.chars().map(String::from).collect(),
        None => {
            let listed = config.get(LAYER_KINDS).and_then(|kinds| kinds.as_array());
            let listed = listed.ok_or_else(|| config.missing(LAYER_KINDS))?;
            let name = |kind: &serde_json::Value| kind.as_str().unwrap_or_default().to_string();
            listed.iter().map(name).collect()
        }
    };
    if names.len() != parts.n_layers {
        let found = format!("{} for {} layers", names.len(), parts.n_layers);
        return Err(file.invalid("kinds of layers", found, "a kind for each layer"));
    }
    let kind = |name: &String| match name.as_str() {
        "M" | "mamba" | "linear_attention" => Ok(Kind::Ssd),
        "*" | "attention" | "full_attention" => Ok(Kind::Attention),
        "-" | "mlp" => Ok(Kind::Ffn),
        other => Err(file.unsupported(format!("layers of the kind `{other}`"))),
    };
    names.iter().map(kind).collect()
}
