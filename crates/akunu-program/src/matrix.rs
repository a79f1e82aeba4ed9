//! Matrices of weights.

use akunu_types::DType;

use crate::buffer::Slice;
use crate::mlx::{MlxLayout, ScaleType};

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
    /// Where its parts lie, from `place` on.
    pub storage: Storage,
}

/// Where the parts of a weight matrix lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// One row behind the other, scales in their blocks.
    #[default]
    Rows,
    /// MLX: packed values, scales and biases in three arrays.
    Mlx(MlxLayout),
}

impl Storage {
    /// Matrices of a format that lie in `layout` if it is one of MLX's.
    pub fn of(dtype: DType, layout: impl FnOnce() -> MlxLayout) -> Storage {
        match dtype.mlx_bits() {
            Some(_) => Storage::Mlx(layout()),
            None => Storage::Rows,
        }
    }

    /// `[packed values | scales | biases]` if the format is one of MLX's; scales are halves.
    pub fn contiguous(dtype: DType, [rows, cols]: [usize; 2], group_size: u32) -> Storage {
        let shape = [rows as u32, cols as u32];
        Storage::of(dtype, || {
            MlxLayout::contiguous(dtype, shape, group_size, ScaleType::F16)
        })
    }

    /// The layout of MLX's parts, all zeros for rows: the fields of params that both share.
    pub fn mlx(self) -> MlxLayout {
        match self {
            Storage::Rows => MlxLayout::default(),
            Storage::Mlx(layout) => layout,
        }
    }
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
