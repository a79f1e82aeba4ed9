//! [`int8_gemm`](crate::matmul::x86::int8_gemm) for AVX-VNNI.

use std::arch::x86_64::*;

use crate::matmul::blocked_gemm::Group;
use crate::matmul::x86::avx2::int8_gemm::{ByteDot, by_quant};
use crate::panels::format::Quant;

/// Adds the products of `n_cells` cells of a panel with `n_vectors` vectors at `x`.
///
/// # Safety
/// - `level`: AVX-VNNI.
/// - `reach`: the group has as many cells and sums, `x` as many cells.
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
pub unsafe fn add(quant: Quant, group: Group, x: *const u8, n_vectors: usize, n_cells: usize) {
    // SAFETY: passes on `level` and `reach`.
    unsafe { by_quant::<MultiplyAdd>(quant, group, x, n_vectors, n_cells) }
}

/// `vpdpbusd`: a sum of 32 bits.
struct MultiplyAdd;

impl ByteDot for MultiplyAdd {
    const MOST_BITS: u32 = 8;

    #[inline(always)]
    unsafe fn start(sums_of_x: i32, minus_centre: __m256i) -> __m256i {
        // SAFETY: passes on `level`.
        unsafe { _mm256_madd_epi16(_mm256_set1_epi32(sums_of_x), minus_centre) }
    }

    #[inline(always)]
    unsafe fn dot(sums: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        // SAFETY: passes on `level`.
        unsafe { _mm256_dpbusd_avx_epi32(sums, weights, x) }
    }

    #[inline(always)]
    unsafe fn whole(sums: __m256i) -> __m256 {
        // SAFETY: passes on `level`.
        unsafe { _mm256_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn half(sums: __m256i, _: __m256i) -> __m256i {
        sums
    }

    /// A sum of 17 bits times a factor of 8 is exact in a float.
    #[inline(always)]
    unsafe fn both(halves: [__m256i; 2], factors: [__m256i; 2]) -> __m256 {
        // SAFETY: passes on `level`.
        unsafe {
            let of_low = _mm256_cvtepi32_ps(_mm256_srai_epi32::<16>(factors[0]));
            let of_high = _mm256_cvtepi32_ps(_mm256_srai_epi32::<16>(factors[1]));
            let low = _mm256_mul_ps(_mm256_cvtepi32_ps(halves[0]), of_low);
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(halves[1]), of_high, low)
        }
    }
}
