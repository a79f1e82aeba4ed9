//! Latent attention of DeepSeek V2 and its like, with the names of its weights.

use super::{Parts, in_layer, linear};
use crate::error::ArchError;
use crate::ffn::ExpertLinear;
use crate::file::{Key, ModelFile};
use crate::latent::Latent;
use crate::layer::{Attention, Norm};
use crate::rope::Rope;
use crate::weights::{NamedMatrix, NamedVector};

const RANK: Key = Key::new(&["attention.kv_lora_rank"], &["kv_lora_rank"]);
const TURNED_DIM: Key = Key::new(&["rope.dimension_count"], &["qk_rope_head_dim"]);
/// Elements of a query's head that do not turn; GGUF files count those that do with them.
const PLAIN_DIM: Key = Key::new(&[], &["qk_nope_head_dim"]);
/// Older GGUF files know no other heads than those.
const QUERY_DIM: Key = Key::new(&["attention.key_length_mla", "attention.key_length"], &[]);
const VALUE_DIM: Key = Key::new(
    &["attention.value_length_mla", "attention.value_length"],
    &["v_head_dim"],
);

/// The sizes of latent attention.
#[derive(Clone, Copy)]
pub(crate) struct LatentSizes {
    rank: u32,
    plain_dim: u32,
    turned_dim: u32,
    value_dim: u32,
}

impl LatentSizes {
    /// The sizes that a file says.
    pub fn read(file: &ModelFile) -> Result<LatentSizes, ArchError> {
        let turned_dim = file.required(TURNED_DIM)?;
        let plain_dim = match file.config() {
            Some(_) => file.required(PLAIN_DIM)?,
            None => file.required(QUERY_DIM)?.saturating_sub(turned_dim),
        };
        let sizes = LatentSizes {
            rank: file.required(RANK)?,
            plain_dim,
            turned_dim,
            value_dim: file.required(VALUE_DIM)?,
        };
        file.check_size("rank of keys and values", sizes.rank, 1 << 12)?;
        file.check_size("elements of a head that do not turn", plain_dim, 1 << 12)?;
        file.check_size("elements of a head that turn", turned_dim, 1 << 12)?;
        file.check_size("elements of a value", sizes.value_dim, 1 << 12)?;
        Ok(sizes)
    }

    /// Elements of a query's head.
    pub fn query_dim(&self) -> u32 {
        self.plain_dim + self.turned_dim
    }

    /// The rotary positions of the elements that turn: pairs of neighbours, in every file.
    pub fn rope(&self, file: &ModelFile) -> Result<Rope, ArchError> {
        let rope = file.rope(self.turned_dim)?.interleaved();
        Ok(Rope {
            turned_dim: Some(self.turned_dim),
            ..rope
        })
    }
}

impl Parts<'_> {
    /// Latent attention with these positions and this factor of the scores.
    pub(crate) fn latent_attention(
        &self,
        at: usize,
        sizes: &LatentSizes,
        (rope, scale): (Rope, f32),
    ) -> Attention {
        let (heads, rank) = (self.heads[at], sizes.rank);
        let name = |part: &str| in_layer(at, &format!("attention.{part}"));
        let plain = self.attention_of(at, 1, rank + sizes.turned_dim);
        let low_rank = self.file.rows(&format!("{}.weight", name("q_low")));
        let queries = heads * sizes.query_dim();
        let (low, q) = match low_rank {
            0 => (None, linear(name("q"), queries, self.dim)),
            low_rank => {
                let low = linear(name("q_low"), low_rank, self.dim);
                let norm = self.norm_of(name("q_low_norm"), low_rank);
                (
                    Some((low, norm)),
                    linear(name("q_of_low"), queries, low_rank),
                )
            }
        };
        let both = linear(name("compressed"), rank + sizes.turned_dim, self.dim);
        let part = |first, rows| crate::linear::Linear {
            weight: both.weight.part(first, rows),
            bias: None,
        };
        let turned = part(rank, sizes.turned_dim);
        let [keys, values] = self.of_heads(at, sizes);
        Attention {
            latent: Some(Latent {
                rank,
                plain_dim: sizes.plain_dim,
                turned_dim: sizes.turned_dim,
                value_dim: sizes.value_dim,
                low,
                compressed: part(0, rank),
                norm: self.norm_of(name("compressed_norm"), rank),
                keys,
                values,
            }),
            q,
            k: turned.clone(),
            v: turned,
            output: linear(name("output"), self.dim, heads * sizes.value_dim),
            rope: Some(rope),
            scale,
            ..plain
        }
    }

    /// The matrices of each head for keys and for values. Folders and old GGUF files have both in one tensor, those of keys with the
    /// inputs as rows.
    fn of_heads(&self, at: usize, sizes: &LatentSizes) -> [ExpertLinear; 2] {
        let LatentSizes {
            rank,
            plain_dim,
            value_dim,
            ..
        } = *sizes;
        let heads = self.heads[at];
        let matrix = |weight, rows, stride| ExpertLinear {
            weight,
            rows,
            stride,
            bias: None,
            scale: None,
        };
        let named = |part: &str| in_layer(at, &format!("attention.{part}.weight"));
        if self.has(&named("keys_and_values")) {
            let step = plain_dim + value_dim;
            let both = NamedMatrix::new(named("keys_and_values"), heads * step, rank);
            let pieces = (0..heads).map(|head| [head * step, plain_dim]);
            let keys = NamedMatrix {
                rows: heads * rank,
                cols: plain_dim,
                ..both.gathered(pieces.collect()).transposed()
            };
            let values = both.part(plain_dim, heads * step - plain_dim);
            return [matrix(keys, rank, rank), matrix(values, value_dim, step)];
        }
        let stacked = |part, shape| NamedMatrix::stacked(named(part), heads, shape);
        let keys = stacked("latent_keys", [rank, plain_dim]);
        let values = stacked("latent_values", [value_dim, rank]);
        [
            matrix(keys, rank, rank),
            matrix(values, value_dim, value_dim),
        ]
    }

    /// A norm of so many elements by their root mean square.
    fn norm_of(&self, name: String, width: u32) -> Norm {
        let norm = self.norm(name);
        Norm {
            weight: NamedVector {
                cols: width,
                ..norm.weight
            },
            ..norm
        }
    }
}
