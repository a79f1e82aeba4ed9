//! Heads, caches, and which keys a row sees.

use akunu_types::KvFormat;

use crate::buffer::{Buffer, Slice};
use crate::step::PageMap;

/// The heads of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Query heads, a multiple of the others.
    pub n_heads: u32,
    /// Key and value heads.
    pub n_kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
}

/// The norms of single heads of q and k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadNorms {
    /// Weights for q, (head_dim).
    pub q: Slice,
    /// Weights for k, (head_dim).
    pub k: Slice,
    /// Added under the root.
    pub eps: f32,
    /// Whether heads turn before they are multiplied by the weights; then k is not multiplied.
    pub turn_first: bool,
}

/// The keys and values of one layer: (n_pages, n_kv_heads, page, head_dim) each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerCache {
    /// How they are stored.
    pub format: KvFormat,
    /// Keys, turned to their positions.
    pub k: Buffer,
    /// The pool of values.
    pub v: Buffer,
    /// Where the pages of a sequence are found.
    pub pages: PageMap,
}

/// The keys that rows attend to in [`Op::AttendRows`](crate::Op::AttendRows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKeys {
    /// All rows of the row's own text: keys and values are (rows, n_kv_heads, head_dim).
    OwnText,
    /// The rows of its own text that are not further away than this.
    Nearby {
        /// The largest distance, at least 1.
        reach: u32,
    },
    /// All positions of an encoder: keys and values are (n_sequences, n_keys, n_kv_heads, head_dim) halves
    /// ([`Op::Halves`](crate::Op::Halves)), and a row sees those of its sequence.
    Across {
        /// Positions of a sequence.
        n_keys: u32,
    },
}

/// What is added to a score by how far the query is behind the key: relative positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceBias {
    /// (n_heads, 2 * reach + 1): entry `reach + query - key`. Distances beyond `reach` have the entry of `reach`.
    pub table: Slice,
    /// The largest distance that has an entry of its own.
    pub reach: u32,
}
