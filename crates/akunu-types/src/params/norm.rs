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
