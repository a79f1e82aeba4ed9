//! Parameters of normalisation.

use crate::layout::shared_struct;

shared_struct! {
    /// `y = x / sqrt(mean(x²) + eps) * weight`, one row a threadgroup.
    pub struct RMSNormParams = "RMSNormParams", size = 16 {
        /// Elements of a row.
        0 => dim: u32,
        /// Added to the mean square before the root.
        4 => eps: f32,
        /// Number of rows. The reference leaves it to the grid and has padding here.
        8 => n_rows: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// `y = (x - mean) / sqrt(var + eps) * weight + bias`, one row a threadgroup.
    pub struct LayerNormParams = "LayerNormParams", size = 16 {
        /// Elements of a row.
        0 => dim: u32,
        /// Added to the variance before the root.
        4 => eps: f32,
        /// Number of rows. The reference leaves it to the grid and has padding here.
        8 => n_rows: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// RMSNorm of each head by itself (the QK norm of Qwen 3 and Gemma 3), in place.
    pub struct HeadNormParams = "HeadNormParams", size = 32 {
        /// Elements of a head.
        0 => head_dim: u32,
        /// Number of heads of a row.
        4 => n_heads: u32,
        /// Number of rows (tokens).
        8 => seq_len: u32,
        /// Added to the mean square before the root.
        12 => eps: f32,
        /// Unused, zero.
        16 => _pad0: u32,
        /// Unused, zero.
        20 => _pad1: u32,
        /// Unused, zero.
        24 => _pad2: u32,
        /// Unused, zero.
        28 => _pad3: u32,
    }
}
