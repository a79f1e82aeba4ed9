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
pub mod simd_gemm;
pub mod simd_gemm_small;

pub(super) mod product;
mod shapes;

use crate::chip::SIMD_WIDTH;
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
