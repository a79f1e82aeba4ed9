//! Small kernels that add or move elements: biases, residuals, copies, means, transposes, splits.

pub mod bias_add;
pub mod copy;
pub mod gather_rows;
pub mod head_rearrange;
pub mod mean_rows;
pub mod qkv_split;
pub mod residual_add;
pub mod transpose;
pub mod vector_add;

use crate::table::Launch;

/// One thread for four columns of each row, in threadgroups of 256 along the row.
pub(super) const fn launch_matrix(rows: u32, cols: u32) -> Launch {
    let Launch { grid, threads, .. } = Launch::elementwise4(cols);
    Launch::new([grid[0], rows, 1], threads)
}
