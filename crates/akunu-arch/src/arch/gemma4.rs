//! Gemma 4: the length of heads and the number of key heads differ between layers with a window and those without, where keys may
//! be the values too; values are normalised; a factor follows each layer. E2B and E4B have embeddings of a token for each layer, and the
//! last layers read the keys and values of the last layer of their kind that has some.

use super::gemma;
use super::prelude::*;
use crate::layer::{HeadNorms, Mixer};

/// Gemma 4, its text alone.
pub const ARCH: Architecture = Architecture {
    name: "gemma4",
    model_types: &["gemma4", "gemma4_text", "gemma4_unified"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: true,
};
const LOCAL_BASE: f32 = 10_000.0;
const SOFTCAP: Key = Key::same(&["final_logit_softcapping"]);
const SHARED_LAYERS: Key = Key::new(&["attention.shared_kv_layers"], &["num_kv_shared_layers"]);
/// The length of heads in layers with a window, where files name that of the others first.
const LOCAL_HEAD_DIM: Key = Key::new(&["attention.key_length_swa"], &[]);
/// The same of layers without a window, where files name that of the others first.
const GLOBAL_HEAD_DIM: Key = Key::new(&[], &["global_head_dim"]);
const GLOBAL_KV_HEADS: Key = Key::new(&[], &["num_global_key_value_heads"]);
const LAYER_EMBEDDING_WIDTH: Key = Key::new(
    &["embedding_length_per_layer_input"],
    &["hidden_size_per_layer_input"],
);
/// Layers that read the keys of earlier ones have feed-forward blocks of twice the width. GGUF files have a width for each layer.
const DOUBLE_WIDTH: Key = Key::new(&[], &["use_double_wide_mlp"]);

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_activation", "gelu_pytorch_tanh")?;
    file.only("use_bidirectional_attention", "vision")?;
    file.never(&["attention_bias"])?;
    let pattern = WindowPattern::AllButEvery { period: 6 };
    let mut parts = Parts::read(file, pattern, Some(LOCAL_BASE))?;
    let n_with_keys = layers_with_keys(&parts)?;
    if file.bool(DOUBLE_WIDTH)? == Some(true) {
        parts.ffn[n_with_keys..]
            .iter_mut()
            .for_each(|width| *width *= 2);
    }
    let width = file.u32(LAYER_EMBEDDING_WIDTH)?.filter(|&width| width > 0);
    if let Some(width) = width {
        file.check_size(&file.key_name(LAYER_EMBEDDING_WIDTH), width, 1 << 12)?;
    }
    let experts = match file.has_experts()? {
        true => Some(ExpertParts::read(&parts, ROUTING)?),
        false => None,
    };
    let mut layers: Vec<Layer> = Vec::with_capacity(parts.n_layers);
    for at in 0..parts.n_layers {
        let own = layer(&parts, experts.as_ref(), at)?;
        let own = match at < n_with_keys {
            true => own,
            false => with_keys_of_earlier(own, &layers[..n_with_keys], file)?,
        };
        let input = width.map(|width| parts.layer_input(at, width));
        layers.push(Layer { input, ..own });
    }
    let mut model = gemma::decoder(&parts, |at| layers[at].clone());
    model.embedding.of_layers = width.map(|width| parts.layer_embeddings(width));
    if let Output::Logits(logits) = &mut model.output {
        logits.softcap = file.f32(SOFTCAP)?;
    }
    Ok(model)
}

/// Number of layers, from the first on, that store keys and values.
fn layers_with_keys(parts: &Parts) -> Result<usize, ArchError> {
    let n_shared = parts.file.u32(SHARED_LAYERS)?.unwrap_or(0) as usize;
    match parts.n_layers.checked_sub(n_shared) {
        Some(n) if n > 0 => Ok(n),
        _ => Err(parts.file.invalid(
            &parts.file.key_name(SHARED_LAYERS),
            format!("{n_shared} of {} layers", parts.n_layers),
            "less than the number of layers",
        )),
    }
}

/// The layer with the keys and values of the last one of `earlier` that has as many keys in its window.
fn with_keys_of_earlier(
    layer: Layer,
    earlier: &[Layer],
    file: &ModelFile,
) -> Result<Layer, ArchError> {
    let Mixer::Attention(own) = layer.mixer else {
        return Ok(layer);
    };
    let mut all = earlier.iter().enumerate().rev();
    let found = all.find_map(|(at, layer)| {
        let attention = layer.mixer.attention()?;
        (attention.window == own.window).then(|| (at, attention.clone()))
    });
    let Some((at, source)) = found else {
        let key = file.key_name(SHARED_LAYERS);
        let found = "so large that a layer finds no keys of its kind before it".to_string();
        return Err(file.invalid(&key, found, "less"));
    };
    let own_norm = own.qk_norm.map(|norms| norms.q);
    let attention = Attention {
        keys_of: Some(at),
        heads: own.heads,
        head_dim: own.head_dim,
        q: own.q,
        output: own.output,
        qk_norm: source
            .qk_norm
            .clone()
            .zip(own_norm)
            .map(|(norms, q)| HeadNorms { q, ..norms }),
        ..source
    };
    Ok(Layer {
        mixer: Mixer::Attention(attention),
        ..layer
    })
}

fn layer(parts: &Parts, experts: Option<&ExpertParts>, at: usize) -> Result<Layer, ArchError> {
    let ffn = match experts {
        Some(all) => all.ffn(at, |experts| experts.beside_gated(parts, at)),
        None => Ffn::Gated(parts.gated(at, Activation::Gelu)),
    };
    let layer = Layer::new(attention(parts, at)?, ffn, parts.sandwich_norms(at));
    let scale = parts.file.number(&format!("layers.{at}.scale"))?;
    Ok(Layer { scale, ..layer })
}

fn attention(parts: &Parts, at: usize) -> Result<Attention, ArchError> {
    let Attention { window, rope, .. } = parts.attention(at);
    let [kv_heads, head_dim] = match window {
        Some(_) => local_heads(parts, at)?,
        None => global_heads(parts, at)?,
    };
    parts.file.check_size("head length", head_dim, 1 << 10)?;
    parts
        .file
        .check_size("key/value heads", kv_heads, 1 << 12)?;
    let attention = parts.attention_of(at, kv_heads, head_dim);
    let rope = match window {
        // The weight `rope_freqs` is for the others.
        Some(_) => rope.map(|rope| Rope {
            factors: RopeFactors::None,
            ..rope
        }),
        None => Some(parts.file.rope(head_dim)?),
    };
    let has_values = parts.file.store.tensor(&attention.v.weight.name).is_some();
    Ok(Attention {
        v: if has_values {
            attention.v
        } else {
            attention.k.clone()
        },
        qk_norm: Some(parts.head_norms_of(at, head_dim)),
        value_eps: Some(parts.eps),
        scale: 1.0,
        rope,
        ..attention
    })
}

/// Key heads and their length in a layer with a window.
fn local_heads(parts: &Parts, at: usize) -> Result<[u32; 2], ArchError> {
    let head_dim = parts.file.u32(LOCAL_HEAD_DIM)?;
    Ok([parts.kv_heads[at], head_dim.unwrap_or(parts.head_dim)])
}

/// The same in a layer without. Newer folders have a section for each such layer.
fn global_heads(parts: &Parts, at: usize) -> Result<[u32; 2], ArchError> {
    let plain = [parts.kv_heads[at], parts.head_dim];
    let Some(config) = parts.file.config() else {
        return Ok(plain);
    };
    let of_layers = config.section("per_layer_config");
    if let Some(own) = of_layers.and_then(|all| all.section(&at.to_string())) {
        let kv_heads = own.u32("num_key_value_heads")?.unwrap_or(plain[0]);
        return Ok([kv_heads, own.u32("head_dim")?.unwrap_or(plain[1])]);
    }
    let kv_heads = match config.bool("attention_k_eq_v")? {
        Some(true) => parts.file.u32(GLOBAL_KV_HEADS)?,
        _ => None,
    };
    let head_dim = parts.file.u32(GLOBAL_HEAD_DIM)?;
    Ok([kv_heads.unwrap_or(plain[0]), head_dim.unwrap_or(plain[1])])
}
