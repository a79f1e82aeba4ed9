//! Matrix products with weights in any format: `y = alpha * x @ weightᵀ + beta * y`.
//!
//! | kernel | rows of x | what it is for |
//! |---|---|---|
//! | `gemv` | 1 | decoding |
//! | `gemv_wide` | 1 | decoding, outputs as wide as a vocabulary |
//! | `gemv_silu`, `gemv_gelu` | 1 | the gate of a feed-forward network and its down projection |
//! | `gemv_batched` | 2 to 16 | speculative decoding, small batches |
//! | `simd_gemm_small` | up to 8 a tile | a short prefill |
//! | `simd_gemm` | up to 32 a tile | prefill |
//!
//! All of them take any number of rows; they differ in how often they read the weights.
//!
//! Rows of an output that a SIMD group or threadgroup computes are written here and in the template of
//! the kernel (`kernels/include/`): a wrong number leaves rows unwritten, which every case would show.

pub mod gemv;
pub mod gemv_batched;
pub mod gemv_gated;
pub mod gemv_wide;
pub mod select;
pub mod simd_gemm;
pub mod simd_gemm_small;

pub mod product;
#[cfg(feature = "testing")]
pub(super) mod shapes;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::table::Launch;

/// From this K on a gemv has 8 SIMD groups instead of 4. The reference has kernels of their own for it
/// (`gemv_q4_0_l`); ours ask for the number of SIMD groups at run time.
const LARGE_K: u32 = 2048;

/// The launch of a gemv of `n` outputs whose SIMD groups compute `rows` each, for `m` vectors.
pub(super) fn gemv_launch(n: u32, rows: u32, simd_groups: u32, m: u32) -> Launch {
    let per_group = rows * simd_groups;
    Launch::new(
        [n.div_ceil(per_group), m, 1],
        [simd_groups * SIMD_WIDTH, 1, 1],
    )
}

/// SIMD groups of a threadgroup that contracts `k` values.
pub(super) fn gemv_simd_groups(k: u32) -> u32 {
    if k < LARGE_K { 4 } else { 8 }
}

/// So many SIMD groups, or as many as a threadgroup may have.
pub(super) fn allowed_simd_groups(wanted: u32, chip: &ChipConfig) -> u32 {
    wanted.min(chip.max_threads / SIMD_WIDTH).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a tail of outputs is left to no threadgroup, or one is launched for nothing.
    #[test]
    fn every_output_has_a_simd_group_and_no_threadgroup_is_idle() {
        for n in [1, 15, 16, 17, 49_152] {
            for (rows, k) in [(4, 64), (4, 4096), (8, 576)] {
                let simd_groups = gemv_simd_groups(k);
                let launch = gemv_launch(n, rows, simd_groups, 3);
                let per_group = rows * simd_groups;
                assert!(launch.grid[0] * per_group >= n);
                assert!((launch.grid[0] - 1) * per_group < n);
                assert_eq!(launch.grid[1..], [3, 1]);
                assert_eq!(launch.threads, [32 * simd_groups, 1, 1]);
            }
        }
        assert_eq!([2047, 2048].map(gemv_simd_groups), [4, 8]);
    }
}
