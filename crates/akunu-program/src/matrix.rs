//! Matrices of weights.

use akunu_types::DType;

use crate::buffer::Slice;
use crate::mlx::MlxLayout;

/// The format of vectors: norms, biases and learned tables.
pub const VECTOR: DType = DType::F32;

/// Values of MLX rows come in whole numbers of this many, whatever the width.
const MLX_BLOCK: usize = 32;

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

/// The values of a row of `cols` that fill blocks of its format.
pub fn whole_blocks(dtype: DType, cols: usize) -> usize {
    let block = if dtype.is_mlx() {
        MLX_BLOCK
    } else {
        dtype.block_len()
    };
    cols / block * block
}

/// Bytes of a row of `cols` values, without the scales of MLX weights. It saturates.
pub fn row_bytes(dtype: DType, cols: usize) -> usize {
    (whole_blocks(dtype, cols) / dtype.block_len()).saturating_mul(dtype.block_bytes())
}
