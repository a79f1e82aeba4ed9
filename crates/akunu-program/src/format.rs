//! Rows of values in a format.

use akunu_types::DType;

/// The format of vectors: norms, biases and learned tables.
pub const VECTOR: DType = DType::F32;

/// Values of MLX rows come in whole numbers of this many, whatever the width.
const MLX_BLOCK: usize = 32;

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
