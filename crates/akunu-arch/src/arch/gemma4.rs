//! Gemma 4: the length of heads and the number of key heads differ between layers with a window and those without, where keys may
//! be the values too; values are normalised; a factor follows each layer.

use super::gemma;
use super::prelude::*;

/// Without per-layer embeddings and layers that share keys and values, which E2B and E4B have.
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
/// Table of embeddings for all layers, in folders and in GGUF files.
const PER_LAYER_TABLES: [&str; 2] = ["embed_tokens_per_layer.", "per_layer_token_embd."];

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.only("hidden_activation", "gelu_pytorch_tanh")?;
    file.only("use_bidirectional_attention", "vision")?;
    file.never(&["attention_bias"])?;
    let is_per_layer = |name: &str| PER_LAYER_TABLES.iter().any(|table| name.contains(table));
    if file.store.iter().any(|weight| is_per_layer(weight.tensor)) {
        return Err(file.unsupported("the per-layer embeddings of Gemma 4 E2B and E4B".to_string()));
    }
    if file.u32(SHARED_LAYERS)?.is_some_and(|n| n > 0) {
        return Err(file.unsupported("layers that share keys and values".to_string()));
    }
    let pattern = WindowPattern::AllButEvery { period: 6 };
    let parts = Parts::read(file, pattern, Some(LOCAL_BASE))?;
    let experts = match file.has_experts()? {
        true => Some(ExpertParts::read(&parts, ROUTING)?),
        false => None,
    };
    let layers = (0..parts.n_layers).map(|at| layer(&parts, experts.as_ref(), at));
    let layers: Vec<Layer> = layers.collect::<Result<_, _>>()?;
    let mut model = gemma::decoder(&parts, |at| layers[at].clone());
    if let Output::Logits(logits) = &mut model.output {
        logits.softcap = file.f32(SOFTCAP)?;
    }
    Ok(model)
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
