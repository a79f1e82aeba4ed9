//! Parameters of the embedding lookup and of learned positions.

use crate::layout::shared_struct;

shared_struct! {
    /// Copies (dequantises) one row of the embedding table for each token id.
    pub struct EmbeddingParams = "EmbeddingParams", size = 16 {
        /// Number of tokens to look up.
        0 => num_tokens: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// Rows of the table; an id beyond it reads the last row. Padding in the reference.
        8 => vocab_size: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// Adds the learned embedding of positions `pos ..` to `seq_len` rows.
    pub struct PosEmbedParams = "PosEmbedParams", size = 16 {
        /// Number of rows (tokens).
        0 => seq_len: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// Position of the first row. Patched per token.
        8 => pos: u32,
        /// Rows of the table; a position beyond it reads the last row.
        12 => n_positions: u32,
    }
}
