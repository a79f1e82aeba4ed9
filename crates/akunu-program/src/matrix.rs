//! Matrices of weights.

use akunu_types::DType;

use crate::buffer::Slice;
use crate::mlx::MlxLayout;

/// A matrix of weights: its place and its format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    /// The first byte.
    pub place: Slice,
    /// The format.
    pub dtype: DType,
    /// Outputs.
    pub rows: u32,
    /// The number of inputs.
    pub cols: u32,
    /// Where the parts of MLX weights lie, from `place` on.
    pub mlx: MlxLayout,
}

/// The windows of a signal that a convolution reads, which overlap if `stride` is less than a window.
///
/// With time-major input (time, channels), a window of `k` steps is `k * channels` numbers that lie side by side, and
/// the next one begins `step * channels` further on. So a convolution is a product, with weights
/// (outputs, k, channels). What lies beyond both ends of the signal is zeros that the host has put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// How many.
    pub count: u32,
    /// Numbers between the beginnings of two of them.
    pub stride: u32,
}
