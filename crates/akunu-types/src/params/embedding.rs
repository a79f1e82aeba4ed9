//! Parameters of the embedding lookup.

use crate::layout::shared_struct;

shared_struct! {
    /// Copies (dequantises) one row of the embedding table for each token id.
    pub struct EmbeddingParams = "EmbeddingParams", size = 16 {
        /// Number of tokens to look up.
        0 => num_tokens: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}
