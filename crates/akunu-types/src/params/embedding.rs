//! Parameters of the embedding lookup, of its scale, of learned positions and of the features of images.

use crate::layout::shared_struct;

shared_struct! {
    /// Copies (dequantises) one row of the embedding table for each token id.
    pub struct EmbeddingParams = "EmbeddingParams", size = 16 {
        /// Number of tokens to look up.
        0 => num_tokens: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// Rows of the table; an id beyond it reads the last row.
        8 => vocab_size: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// `x[i] *= factor`, in place: what some models do with the rows that they have looked up.
    pub struct EmbeddingScaleParams = "EmbeddingScaleParams", size = 16 {
        /// What each element is multiplied by.
        0 => factor: f32,
        /// Number of elements.
        4 => count: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}

shared_struct! {
    /// Adds a row of a learned table to each row: the one of its position, or the one of its kind.
    pub struct PosEmbedParams = "PosEmbedParams", size = 16 {
        /// Number of rows (tokens).
        0 => n_rows: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// Rows of the table; a position beyond it reads the last row.
        8 => n_positions: u32,
        /// 0: a row's position chooses. 1: whether it is of the second text of a pair
        /// ([`Row::SECOND`](super::Row::SECOND)).
        12 => by_kind: u32,
    }
}

shared_struct! {
    /// Puts features in the place of the rows of images, or adds them.
    pub struct PlaceRowsParams = "PlaceRowsParams", size = 16 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// 1: features are added to the rows; 0: they replace them.
        8 => add: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}
