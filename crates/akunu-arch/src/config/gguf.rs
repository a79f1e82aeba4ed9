//! A model's shape from GGUF metadata.

use akunu_gguf::{GgufFile, Metadata, WeightStore};

use super::{LayerConfig, ModelConfig, n_positions, n_rows};
use crate::arch;
use crate::descriptor::{ArchDescriptor, ClassifierHead};
use crate::encoder_use::Pooling;
use crate::error::ArchError;
use crate::rope::{RopeConfig, RopeFactors};

/// The keys of one architecture: `llama.block_count`.
struct Keys<'a> {
    metadata: &'a Metadata,
    arch: &'a str,
}

impl Keys<'_> {
    fn u32(&self, key: &str) -> Result<Option<u32>, ArchError> {
        Ok(self.metadata.u32(&format!("{}.{key}", self.arch))?)
    }

    fn f32(&self, key: &str) -> Result<Option<f32>, ArchError> {
        Ok(self.metadata.f32(&format!("{}.{key}", self.arch))?)
    }

    fn required(&self, key: &str) -> Result<u32, ArchError> {
        let missing = || {
            self.metadata
                .missing(&format!("{}.{key}", self.arch))
                .into()
        };
        self.u32(key)?.ok_or_else(missing)
    }
}

pub(super) fn read(file: &GgufFile, store: &WeightStore) -> Result<ModelConfig, ArchError> {
    let metadata = file.metadata();
    let name = metadata.string("general.architecture")?;
    let name = name.ok_or_else(|| metadata.missing("general.architecture"))?;
    let keys = Keys {
        metadata,
        arch: name,
    };
    // GGUF holds 1 + w where safetensors hold w.
    let arch = ArchDescriptor {
        norm_adds_one: false,
        ..arch::by_gguf_name(name).ok_or_else(|| arch::unknown(file.path(), name))?
    };

    let dim = keys.required("embedding_length")?;
    let n_heads = keys.required("attention.head_count")?;
    let head_dim = keys
        .u32("attention.key_length")?
        .or_else(|| dim.checked_div(n_heads));
    let head_dim = head_dim.unwrap_or(0);
    let eps = keys.f32("attention.layer_norm_rms_epsilon")?;
    let vocab = store
        .tensor("token_embedding.weight")
        .map(|table| table.rows() as u32);
    let by_width = arch.width_scaled_layers == Some(keys.required("block_count")?);
    let scalar = if by_width {
        dim as f32 / n_heads.max(1) as f32
    } else {
        head_dim as f32
    };
    let softcap = |key| {
        if arch.has_softcap {
            keys.f32(key)
        } else {
            Ok(None)
        }
    };
    Ok(ModelConfig {
        arch,
        dim,
        ffn_dim: keys.required("feed_forward_length")?,
        n_heads,
        n_kv_heads: keys.u32("attention.head_count_kv")?.unwrap_or(n_heads),
        head_dim,
        vocab_size: vocab.unwrap_or(0),
        context_length: keys.required("context_length")?,
        norm_eps: eps
            .or(keys.f32("attention.layer_norm_epsilon")?)
            .unwrap_or(1e-5),
        attention_scale: 1.0 / scalar.sqrt(),
        attention_softcap: softcap("attn_logit_softcapping")?,
        final_softcap: softcap("final_logit_softcapping")?,
        embedding_scale: arch.scales_embedding.then(|| (dim as f32).sqrt()),
        tied_embeddings: store.has_tied_embeddings(),
        n_positions: n_positions(store, &arch),
        n_token_types: n_rows(store, "token_types.weight"),
        n_labels: n_rows(store, "classifier.weight"),
        classifier_head: classifier_head(&arch, store),
        has_head_bias: has_head_bias(&arch, store),
        classifier_pooling: classifier_pooling(&keys, &arch, file)?,
        layers: layers(&keys, &arch, file, store)?,
    })
}

/// BERT's head may be left out. Another is always there: a file without it is not whole.
fn classifier_head(arch: &ArchDescriptor, store: &WeightStore) -> Option<ClassifierHead> {
    let is_there = n_rows(store, "pooler.weight") > 0;
    Some(arch.classifier_head).filter(|&head| is_there || head != ClassifierHead::Tanh)
}

fn has_head_bias(arch: &ArchDescriptor, store: &WeightStore) -> bool {
    match arch.classifier_head {
        ClassifierHead::Tanh => true,
        ClassifierHead::GeluNorm => n_rows(store, "pooler.bias") > 0,
    }
}

/// The vector that a classifier reads: BERT's is always that of the first token. Where the key is missing, as in older files,
/// the mean is taken.
fn classifier_pooling(
    keys: &Keys,
    arch: &ArchDescriptor,
    file: &GgufFile,
) -> Result<Pooling, ArchError> {
    let key = "classifier.pooling_type";
    let named = match arch.classifier_head {
        ClassifierHead::Tanh => return Ok(Pooling::First),
        ClassifierHead::GeluNorm => keys.u32(key)?,
    };
    match named {
        None | Some(1) => Ok(Pooling::Mean),
        Some(2) => Ok(Pooling::First),
        Some(other) => Err(ArchError::Unsupported {
            path: file.path().into(),
            what: format!("`{}.{key}` = {other}", keys.arch),
        }),
    }
}

fn layers(
    keys: &Keys,
    arch: &ArchDescriptor,
    file: &GgufFile,
    store: &WeightStore,
) -> Result<Vec<LayerConfig>, ArchError> {
    let rope = rope(keys, file, store)?;
    let window = keys
        .u32("attention.sliding_window")?
        .filter(|&window| window > 0);
    let is_windowed = windowed_layers(keys, arch)?;
    let window_base = keys.f32("rope.freq_base_swa")?.or(arch.window_rope_base);
    let n_layers = keys.required("block_count")?;
    let layer = |at| {
        let window = window.filter(|_| is_windowed(at));
        let local = window.and(window_base);
        let local = local.map(|theta| RopeConfig {
            theta,
            freq_scale: 1.0,
            ..rope
        });
        LayerConfig {
            window,
            rope: local.unwrap_or(rope),
        }
    };
    Ok((0..n_layers.min(1 << 13)).map(layer).collect())
}

/// Which layers have the window: a flag for each, the distance of those that do not, or what the
/// architecture does.
fn windowed_layers(keys: &Keys, arch: &ArchDescriptor) -> Result<impl Fn(u32) -> bool, ArchError> {
    let key = format!("{}.attention.sliding_window_pattern", keys.arch);
    let (flags, period) = match keys.metadata.u32(&key) {
        Ok(period) => (None, period.filter(|&period| period > 0)),
        Err(_) => (keys.metadata.bools(&key)?, None),
    };
    let flags: Option<Vec<bool>> = flags.map(|flags| flags.take(1 << 13).collect());
    let pattern = period.map_or(arch.window, |period| arch.window.with_period(period));
    Ok(move |layer| match &flags {
        Some(flags) => flags.get(layer as usize).copied().unwrap_or(false),
        None => pattern.is_windowed(layer),
    })
}

fn rope(keys: &Keys, file: &GgufFile, store: &WeightStore) -> Result<RopeConfig, ArchError> {
    let theta = keys.f32("rope.freq_base")?.unwrap_or(10_000.0);
    let kind = keys
        .metadata
        .string(&format!("{}.rope.scaling.type", keys.arch))?;
    let factor = keys
        .f32("rope.scaling.factor")?
        .or(keys.f32("rope.scale_linear")?);
    let freq_scale = match kind {
        None | Some("none") if factor.is_none() => 1.0,
        None | Some("none" | "linear") => 1.0 / factor.unwrap_or(1.0),
        Some(other) => {
            let what = format!("the RoPE scaling `{other}`");
            return Err(ArchError::Unsupported {
                path: file.path().to_path_buf(),
                what,
            });
        }
    };
    let weight = store.tensor("rope_freqs").is_some();
    let factors = if weight {
        RopeFactors::Weight
    } else {
        RopeFactors::None
    };
    Ok(RopeConfig {
        theta,
        freq_scale,
        factors,
    })
}
