//! Normalisation: one threadgroup a row, two-phase sums.

pub mod rmsnorm;

use crate::chip::{ChipConfig, SIMD_WIDTH};

/// Threads for a row of `dim` elements: about four elements a thread, whole SIMD groups.
fn norm_threads(dim: u32, chip: &ChipConfig) -> u32 {
    dim.div_ceil(4)
        .next_multiple_of(SIMD_WIDTH)
        .clamp(SIMD_WIDTH, chip.max_threads)
}
