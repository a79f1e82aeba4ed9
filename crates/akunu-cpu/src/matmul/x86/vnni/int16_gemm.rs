//! [`int16_gemm`](crate::matmul::x86::int16_gemm) for AVX-VNNI.

use std::arch::x86_64::*;

use crate::matmul::blocked_gemm::Group;
use crate::matmul::x86::avx2::int16_gemm::{PairDot, by_minima};
use crate::matmul::x86::int16_cell::Minima;

/// Adds the products of `n_cells` cells of a panel with `n_vectors` vectors at `x`.
///
/// # Safety
/// - `level`: AVX-VNNI.
/// - `reach`: the group has as many cells and sums, `x` as many cells.
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
pub unsafe fn add(minima: Minima, group: Group, x: *const u8, n_vectors: usize, n_cells: usize) {
    // SAFETY: passes on `level` and `reach`.
    unsafe { by_minima::<MultiplyAdd>(minima, group, x, n_vectors, n_cells) }
}

/// `vpdpwssd`: a multiplication and an addition in one.
struct MultiplyAdd;

impl PairDot for MultiplyAdd {
    #[inline(always)]
    unsafe fn dot(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: passes on `level`.
        unsafe { _mm256_dpwssd_avx_epi32(sums, a, b) }
    }
}
