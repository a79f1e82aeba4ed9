//! A model's shape from `config.json`.

use akunu_gguf::{ModelFolder, WeightStore};
use serde_json::Value;

use super::section::Section;
use super::{LayerConfig, ModelConfig, n_positions, n_rows};
use crate::arch;
use crate::descriptor::{
    Activation, ArchDescriptor, ClassifierHead, Role, RopePairing, WindowPattern,
};
use crate::encoder_use::Pooling;
use crate::error::ArchError;
use crate::rope::{RopeConfig, RopeFactors};

pub(super) fn read(folder: &ModelFolder, store: &WeightStore) -> Result<ModelConfig, ArchError> {
    let path = folder.path().join("config.json");
    let whole = Section {
        path: &path,
        object: folder.config(),
    };
    let model_type = whole
        .string("model_type")?
        .ok_or_else(|| whole.missing("model_type"))?;
    let arch = arch::by_model_type(model_type);
    let arch = arch.ok_or_else(|| arch::unknown(&path, model_type))?;
    // Safetensors hold the weights as they were trained: split halves.
    let arch = ArchDescriptor {
        rope: arch.rope.map(|_| RopePairing::SplitHalves),
        ..arch
    };
    let text = whole.section("text_config").unwrap_or(whole);

    if arch.role == Role::Encoder {
        check_encoder(&text, &arch)?;
    }
    let dim = text.first_u32(["hidden_size", "n_embd"])?;
    let n_heads = text.first_u32(["num_attention_heads", "n_head"])?;
    let head_dim = text
        .u32("head_dim")?
        .or_else(|| dim.checked_div(n_heads))
        .unwrap_or(0);
    let eps = text.f32("norm_eps")?.or(text.f32("rms_norm_eps")?);
    let eps = eps.or(text.f32("layer_norm_eps")?);
    let eps = eps.or(text.f32("layer_norm_epsilon")?);
    let vocab = store
        .tensor("token_embedding.weight")
        .map(|table| table.rows() as u32);
    let scalar = text
        .f32("query_pre_attn_scalar")?
        .unwrap_or(head_dim as f32);
    let softcap = |key| {
        if arch.has_softcap {
            text.f32(key)
        } else {
            Ok(None)
        }
    };
    let n_labels = n_rows(store, "classifier.weight");
    if n_labels > 0 {
        check_classifier(&text, &arch)?;
    }
    let positions = text.first_u32(["max_position_embeddings", "n_positions"])?;
    Ok(ModelConfig {
        arch,
        dim,
        ffn_dim: text.first_u32(["intermediate_size", "n_inner"])?,
        n_heads,
        n_kv_heads: text.u32("num_key_value_heads")?.unwrap_or(n_heads),
        head_dim,
        vocab_size: vocab.unwrap_or(0),
        context_length: positions.saturating_sub(arch.first_position),
        norm_eps: eps.unwrap_or(1e-6),
        attention_scale: 1.0 / scalar.sqrt(),
        attention_softcap: softcap("attn_logit_softcapping")?,
        final_softcap: softcap("final_logit_softcapping")?,
        embedding_scale: arch.scales_embedding.then(|| (dim as f32).sqrt()),
        tied_embeddings: store.has_tied_embeddings(),
        n_positions: n_positions(store, &arch),
        n_token_types: n_rows(store, "token_types.weight"),
        n_labels,
        // Such a classifier always has one: a folder without it is not whole.
        classifier_head: Some(arch.classifier_head),
        has_head_bias: has_head_bias(&text, &arch),
        classifier_pooling: classifier_pooling(&text, &arch)?,
        layers: layers(&text, &arch)?,
    })
}

/// Refuses what an encoder's config can say and we do not have. What is not said is as usual.
fn check_encoder(text: &Section, arch: &ArchDescriptor) -> Result<(), ArchError> {
    let activation = match arch.activation {
        Activation::GeluErfGate => ("hidden_activation", "gelu"),
        Activation::SiluGate | Activation::GeluGate => ("activation_function", "swiglu"),
        Activation::Gelu => ("hidden_act", "gelu"),
    };
    for (key, usual) in [activation, ("position_embedding_type", "absolute")] {
        if let Some(found) = text.string(key)?.filter(|found| *found != usual) {
            let what = format!("`{key}` = `{found}` in the architecture `{}`", arch.name);
            let path = text.file();
            return Err(ArchError::Unsupported { path, what });
        }
    }
    let never = ["prenorm", "use_rms_norm", "rotary_emb_interleaved"];
    let biases = ["norm_bias", "attention_bias", "mlp_bias"];
    let biases = biases.iter().filter(|_| !arch.has_linear_bias);
    for &key in never.iter().chain(biases) {
        if text.get(key) == Some(&Value::Bool(true)) {
            let what = format!("`{key}` in the architecture `{}`", arch.name);
            let path = text.file();
            return Err(ArchError::Unsupported { path, what });
        }
    }
    if let (Some(relative), Some(found)) =
        (arch.relative, text.u32("relative_attention_num_buckets")?)
        && found != relative.n_buckets
    {
        let what = format!("`relative_attention_num_buckets` = {found}");
        let path = text.file();
        return Err(ArchError::Unsupported { path, what });
    }
    let turned = text.f32("rotary_emb_fraction")?.unwrap_or(1.0);
    if arch.rope.is_some() && turned != 1.0 {
        let what = format!("`rotary_emb_fraction` = {turned}");
        let path = text.file();
        return Err(ArchError::Unsupported { path, what });
    }
    Ok(())
}

/// Refuses another activation in the head of a classifier.
fn check_classifier(text: &Section, arch: &ArchDescriptor) -> Result<(), ArchError> {
    let key = "classifier_activation";
    let usual = match arch.classifier_head {
        ClassifierHead::Tanh => return Ok(()),
        ClassifierHead::GeluNorm => "gelu",
    };
    match text.string(key)?.filter(|found| *found != usual) {
        None => Ok(()),
        Some(found) => Err(ArchError::Unsupported {
            path: text.file(),
            what: format!("`{key}` = `{found}`"),
        }),
    }
}

fn has_head_bias(text: &Section, arch: &ArchDescriptor) -> bool {
    match arch.classifier_head {
        ClassifierHead::Tanh => true,
        ClassifierHead::GeluNorm => text.get("classifier_bias") == Some(&Value::Bool(true)),
    }
}

/// The vector that a classifier reads: BERT's is always that of the first token.
fn classifier_pooling(text: &Section, arch: &ArchDescriptor) -> Result<Pooling, ArchError> {
    let key = "classifier_pooling";
    let named = match arch.classifier_head {
        ClassifierHead::Tanh => None,
        ClassifierHead::GeluNorm => text.string(key)?,
    };
    match named {
        None | Some("cls") => Ok(Pooling::First),
        Some("mean") => Ok(Pooling::Mean),
        Some(other) => Err(ArchError::Unsupported {
            path: text.file(),
            what: format!("`{key}` = `{other}`"),
        }),
    }
}

fn layers(text: &Section, arch: &ArchDescriptor) -> Result<Vec<LayerConfig>, ArchError> {
    let n_layers = text.first_u32(["num_hidden_layers", "n_layer"])?;
    let n_layers = n_layers.min(1 << 13);
    let window = match arch.role {
        Role::Encoder if arch.window != WindowPattern::None => {
            Some(text.required_u32("local_attention")?)
        }
        _ => text.u32("sliding_window")?.filter(|&window| window > 0),
    };
    let period = text
        .u32("sliding_window_pattern")?
        .or(text.u32("global_attn_every_n_layers")?)
        .filter(|&period| period > 0);
    let pattern = period.map_or(arch.window, |period| arch.window.with_period(period));
    let types = text.get("layer_types").and_then(Value::as_array);
    let is_windowed = |at: u32| match types.and_then(|types| types.get(at as usize)) {
        Some(kind) => kind.as_str() == Some("sliding_attention"),
        None => pattern.is_windowed(at),
    };
    let global = rope(text, "full_attention")?;
    let local = match arch.window_rope_base {
        Some(_) => local_rope(text, arch)?,
        None => global,
    };
    let layer = |at| match window.filter(|_| is_windowed(at)) {
        Some(window) => LayerConfig {
            window: Some(window),
            rope: local,
        },
        None => LayerConfig {
            window: None,
            rope: global,
        },
    };
    Ok((0..n_layers).map(layer).collect())
}

/// The rotary positions of windowed layers, where they have their own.
fn local_rope(text: &Section, arch: &ArchDescriptor) -> Result<RopeConfig, ArchError> {
    let nested = text
        .section("rope_parameters")
        .and_then(|all| all.section("sliding_attention"));
    let theta = match nested {
        Some(local) => local.f32("rope_theta")?,
        None => text
            .f32("rope_local_base_freq")?
            .or(text.f32("local_rope_theta")?),
    };
    let theta = theta.or(arch.window_rope_base).unwrap_or(10_000.0);
    Ok(RopeConfig {
        theta,
        freq_scale: 1.0,
        factors: RopeFactors::None,
    })
}

/// The rotary positions of `kind` layers. Older configs have `rope_theta` and `rope_scaling`; newer ones
/// have `rope_parameters`, for all layers or for each kind of layer.
fn rope(text: &Section, kind: &str) -> Result<RopeConfig, ArchError> {
    let parameters = text.section("rope_parameters");
    let parameters = parameters.map(|all| all.section(kind).unwrap_or(all));
    let scaling = parameters.or_else(|| text.section("rope_scaling"));
    let theta = match parameters {
        Some(parameters) => parameters.f32("rope_theta")?,
        None => text
            .f32("rope_theta")?
            .or(text.f32("rotary_emb_base")?)
            .or(text.f32("global_rope_theta")?),
    };
    let mut rope = RopeConfig {
        theta: theta.unwrap_or(10_000.0),
        freq_scale: 1.0,
        factors: RopeFactors::None,
    };
    let Some(scaling) = scaling else {
        return Ok(rope);
    };
    let kind = scaling.string("rope_type")?.or(scaling.string("type")?);
    let number = |key: &str| scaling.f32(key)?.ok_or_else(|| scaling.missing(key));
    match kind {
        None | Some("default") => {}
        Some("linear") => rope.freq_scale = 1.0 / number("factor")?,
        Some("llama3") => {
            rope.factors = RopeFactors::Llama3 {
                factor: number("factor")?,
                low_freq_factor: number("low_freq_factor")?,
                high_freq_factor: number("high_freq_factor")?,
                original_context: scaling.required_u32("original_max_position_embeddings")?,
            }
        }
        Some(other) => {
            let what = format!("the RoPE scaling `{other}`");
            return Err(ArchError::Unsupported {
                path: text.file(),
                what,
            });
        }
    }
    Ok(rope)
}
