//! The shape of one model.

mod gguf;
mod hugging_face;
mod section;

use std::path::Path;

use akunu_gguf::{Container, WeightStore};
use akunu_types::KvFormat;

use crate::descriptor::{ArchDescriptor, ClassifierHead, Role};
use crate::encoder_use::Pooling;
use crate::error::ArchError;
use crate::rope::RopeConfig;

/// Numbers of a head, at most: the kernels of attention take no more.
pub(crate) const MAX_HEAD_LENGTH: u32 = 256;
/// What a position is divided by, at least, before a pair of a head turns by it; real models have some 1.
const MIN_DIVISOR: f32 = 1e-6;

/// What one layer does differently from its neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerConfig {
    /// Number of keys that a query sees, itself included; `None` for all. Half of those of an encoder lie on either side,
    /// besides the query's own.
    pub window: Option<u32>,
    /// Rotary positions.
    pub rope: RopeConfig,
}

/// The shape of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// The architecture, with the RoPE pairing and norm weights of this container.
    pub arch: ArchDescriptor,
    /// Width of the residual stream.
    pub dim: u32,
    /// Width of the feed-forward block.
    pub ffn_dim: u32,
    /// Number of query heads.
    pub n_heads: u32,
    /// Number of key and value heads.
    pub n_kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Rows of the token embedding.
    pub vocab_size: u32,
    /// Positions that the model was trained for.
    pub context_length: u32,
    /// Added under the root of the norms.
    pub norm_eps: f32,
    /// Factor of the attention scores.
    pub attention_scale: f32,
    /// Cap of the attention scores.
    pub attention_softcap: Option<f32>,
    /// Cap of the logits.
    pub final_softcap: Option<f32>,
    /// Factor of the embeddings.
    pub embedding_scale: Option<f32>,
    /// Whether the logits come from the token embedding.
    pub tied_embeddings: bool,
    /// Learned positions, 0 for none.
    pub n_positions: u32,
    /// Kinds of tokens with a learned vector each (BERT's token types), 0 for none.
    pub n_token_types: u32,
    /// Scores that the head of a classifier gives, 0 for a model without one.
    pub n_labels: u32,
    /// What comes before the scores of a classifier. Converters to GGUF leave BERT's out for some.
    pub classifier_head: Option<ClassifierHead>,
    /// Whether the product of that head has a bias.
    pub has_head_bias: bool,
    /// The vector that a classifier reads.
    pub classifier_pooling: Pooling,
    /// The layers.
    pub layers: Vec<LayerConfig>,
}

/// Learned positions that a model has: the rows of its table, but for those before the first one.
fn n_positions(store: &WeightStore, arch: &ArchDescriptor) -> u32 {
    n_rows(store, "position_embedding.weight").saturating_sub(arch.first_position)
}

/// Rows of a table that a model may do without.
fn n_rows(store: &WeightStore, name: &str) -> u32 {
    let rows = store.tensor(name).map_or(0, |table| table.rows());
    u32::try_from(rows).unwrap_or(u32::MAX)
}

impl ModelConfig {
    /// Reads the description of an open model and checks that its numbers make sense.
    pub fn from_store(store: &WeightStore) -> Result<ModelConfig, ArchError> {
        let (config, path) = match store.container() {
            Container::Gguf(file) => (gguf::read(file, store)?, file.path().to_path_buf()),
            Container::Folder(folder) => (
                hugging_face::read(folder, store)?,
                folder.path().join("config.json"),
            ),
        };
        config.check(&path)?;
        Ok(config)
    }

    /// Elements of the queries of a token.
    pub fn q_dim(&self) -> u32 {
        self.n_heads * self.head_dim
    }

    /// Elements of the keys, or of the values, of a token.
    pub fn kv_dim(&self) -> u32 {
        self.n_kv_heads * self.head_dim
    }

    /// Bytes of keys and values that a token reads when there are `n_positions` of them: a layer with a window reads no more
    /// than its window.
    pub fn kv_bytes_read(&self, n_positions: u32, format: KvFormat) -> u64 {
        let head_bytes = format.bytes_per_slot(self.head_dim) as u64;
        let row = 2 * u64::from(self.n_kv_heads) * head_bytes;
        let seen = |layer: &LayerConfig| layer.window.unwrap_or(u32::MAX).min(n_positions);
        let layers = self.layers.iter();
        layers.map(|layer| row * u64::from(seen(layer))).sum()
    }

    /// Checks that no pair of a head turns so fast that its angle is no number any more. `weight` is the weight
    /// `rope_freqs`, if the model has one.
    pub fn check_rope(&self, weight: &[f32], path: &Path) -> Result<(), ArchError> {
        let divisors = self.layers.iter().map(|layer| layer.rope);
        let mut divisors = divisors.flat_map(|rope| rope.divisors(self.head_dim, weight));
        match divisors.find(|divisor| !(MIN_DIVISOR..f32::INFINITY).contains(divisor)) {
            None => Ok(()),
            Some(found) => Err(ArchError::Invalid {
                path: path.to_path_buf(),
                key: "RoPE".to_string(),
                found: format!("scaled so that a position is divided by {found:e}"),
                wanted: "of a base and factors that a model can have",
            }),
        }
    }

    /// Sizes that are zero, do not divide, or are beyond any real model.
    fn check(&self, path: &Path) -> Result<(), ArchError> {
        let sizes = [
            ("layers", self.layers.len() as u64, 1..=1 << 12),
            ("embedding length", self.dim.into(), 1..=1 << 20),
            ("feed-forward length", self.ffn_dim.into(), 1..=1 << 22),
            ("heads", self.n_heads.into(), 1..=1 << 12),
            (
                "key/value heads",
                self.n_kv_heads.into(),
                1..=self.n_heads.into(),
            ),
            ("head length", self.head_dim.into(), 1..=1 << 10),
            ("vocabulary", self.vocab_size.into(), 1..=1 << 24),
            ("context length", self.context_length.into(), 1..=1 << 30),
        ];
        let invalid = |key: &str, found: String, wanted| ArchError::Invalid {
            path: path.to_path_buf(),
            key: key.to_string(),
            found,
            wanted,
        };
        for (key, found, allowed) in sizes {
            if !allowed.contains(&found) {
                return Err(invalid(
                    key,
                    found.to_string(),
                    "a size that a model can have",
                ));
            }
        }
        if self.arch.role == Role::Encoder && self.arch.rope.is_none() {
            // Positions beyond the table would all look alike.
            let (found, needed) = (self.n_positions, self.context_length);
            if found < needed {
                let found = format!("{needed}, and there are {found} learned positions");
                return Err(invalid("context length", found, "at most as many"));
            }
        }
        if !self.n_heads.is_multiple_of(self.n_kv_heads) {
            let found = format!("{} for {} key/value heads", self.n_heads, self.n_kv_heads);
            return Err(invalid("heads", found, "a multiple of the key/value heads"));
        }
        // What the kernels of attention take.
        let (unit, wanted) = match self.arch.role {
            Role::Encoder => (4, "a multiple of 4, at most 256"),
            Role::Decoder | Role::EncoderDecoder => (8, "a multiple of 8, at most 256"),
        };
        if !self.head_dim.is_multiple_of(unit) || self.head_dim > MAX_HEAD_LENGTH {
            return Err(invalid("head length", self.head_dim.to_string(), wanted));
        }
        let model = [
            ("norm epsilon", self.norm_eps),
            ("attention scale", self.attention_scale),
            ("attention soft cap", self.attention_softcap.unwrap_or(1.0)),
            ("final soft cap", self.final_softcap.unwrap_or(1.0)),
        ];
        let rope = self.layers.iter().map(|layer| layer.rope);
        let rope = rope.flat_map(|r| [("RoPE base", r.theta), ("RoPE scale", r.freq_scale)]);
        for (key, found) in model.into_iter().chain(rope) {
            if !(found.is_finite() && found > 0.0) {
                return Err(invalid(key, found.to_string(), "a positive number"));
            }
        }
        self.check_rope(&[], path)?;
        // Half of an encoder's window is how far its rows see.
        let (least, wanted) = match self.arch.role {
            Role::Encoder => (2, "at least 2"),
            Role::Decoder | Role::EncoderDecoder => (1, "at least 1"),
        };
        let narrowest = self.layers.iter().filter_map(|layer| layer.window).min();
        if let Some(window) = narrowest.filter(|&window| window < least) {
            return Err(invalid("sliding window", window.to_string(), wanted));
        }
        Ok(())
    }
}
