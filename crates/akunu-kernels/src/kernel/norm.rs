//! Normalisation: one threadgroup a row, two-phase sums.

pub mod layernorm;
pub mod rmsnorm;
pub mod rmsnorm_residual;

use akunu_types::params::RMSNormParams;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::table::{Args, Launch};

/// One threadgroup a row: about four elements a thread, whole SIMD groups. An empty row has no mean;
/// its empty grid is refused by the plan check.
fn launch_rows(n_rows: u32, dim: u32, chip: &ChipConfig) -> Launch {
    let threads = dim
        .div_ceil(4)
        .next_multiple_of(SIMD_WIDTH)
        .clamp(SIMD_WIDTH, chip.max_threads);
    let n_groups = if dim == 0 { 0 } else { n_rows };
    Launch::new([n_groups, 1, 1], [threads, 1, 1])
}

/// The geometry of the kernels that take [`RMSNormParams`].
fn launch_rmsnorm(args: &Args, chip: &ChipConfig) -> Launch {
    let p: RMSNormParams = args.params();
    launch_rows(p.n_rows, p.dim, chip)
}

#[cfg(feature = "testing")]
mod cases {
    /// Shapes and magnitudes that the row kernels are tested with: (dim, rows, scale). Rows of one
    /// element, around a SIMD group, not a multiple of 4, of models, and longer than a threadgroup.
    pub const SHAPES: [(u32, u32, f32); 8] = [
        (1, 1, 1.0),
        (31, 2, 1.0),
        (32, 1, 1e-4),
        (33, 3, 1.0),
        (576, 2, 100.0),
        (640, 1, 1.0),
        (1002, 2, 1e4),
        (4100, 1, 1.0),
    ];

    /// f32 in, f32 out: only the order of the sum differs, about 1e-7 relative, 1e-14 squared.
    pub const NMSE: f64 = 1e-12;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    pub fn threads_are_whole_simd_groups_within_the_chip() {
        let chip = ChipConfig::m1();
        for (dim, threads) in [(1, 32), (128, 32), (132, 64), (576, 160), (1 << 20, 1024)] {
            assert_eq!(launch_rows(1, dim, &chip).threads, [threads, 1, 1]);
        }
        assert_eq!(launch_rows(3, 0, &chip).grid, [0, 1, 1]);
    }
}
