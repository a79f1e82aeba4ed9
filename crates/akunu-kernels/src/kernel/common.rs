//! Small kernels that add or move elements: biases, copies, means.

pub mod bias_add;
pub mod copy;
pub mod copy_pieces;
pub mod gather_rows;
pub mod mean_rows;
pub mod scale_rows;

use crate::chip::ChipConfig;
use crate::table::Launch;

/// One thread for four columns of each row, in threadgroups of 256 along the row, or what the chip allows.
pub(in crate::kernel) fn launch_matrix(rows: u32, cols: u32, chip: &ChipConfig) -> Launch {
    let Launch { grid, threads, .. } = Launch::elementwise4(cols, chip);
    Launch::new([grid[0], rows, 1], threads)
}
