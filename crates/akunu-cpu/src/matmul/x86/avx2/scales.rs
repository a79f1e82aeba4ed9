//! Adding the products of a cell to the sums, with AVX2: what all gemms with integers share.

use std::arch::x86_64::*;

use super::cells::LANES;
use crate::matmul::x86::int16_cell::{BlockScales, WeightScales};
use crate::panels::format::ROWS;

/// The scales of a cell of a vector in registers, with so many minima.
///
/// # Safety
/// `level`: its functions are inlined into functions that are compiled with AVX2 and FMA.
pub struct OfVector<const MINS: usize> {
    m: usize,
    scale: __m256,
    weights: [__m256; MINS],
}

impl<const MINS: usize> OfVector<MINS> {
    /// Those of vector `m`.
    ///
    /// # Safety
    /// `reach`: there are scales of `M` vectors.
    #[inline(always)]
    pub unsafe fn load<const M: usize>(scales: *const BlockScales<M>, m: usize) -> Self {
        // SAFETY: passes on `reach`.
        unsafe {
            let mut weights = [_mm256_setzero_ps(); MINS];
            for (half, weight) in weights.iter_mut().enumerate() {
                *weight = _mm256_set1_ps(match MINS {
                    1 => (*scales).weights_of_min[m],
                    _ => (*scales).weights_of_half_mins[half][m],
                });
            }
            OfVector {
                m,
                scale: _mm256_set1_ps((*scales).scale[m]),
                weights,
            }
        }
    }

    /// Adds the integer products of the cell with the first or second eight rows, `dots`, to the sums, sixteen for each
    /// vector.
    ///
    /// ```text
    /// sums += dots * (scale of the rows * scale of the vector) + minima * their weights
    /// ```
    ///
    /// # Safety
    /// `reach`: the pointers point at the scales of the rows, and at the sums of the block.
    #[inline(always)]
    pub unsafe fn add(
        &self,
        dots: __m256,
        half: usize,
        of_rows: *const WeightScales,
        sums: *mut f32,
    ) {
        // SAFETY: passes on `reach`.
        unsafe {
            let at = sums.add(ROWS * self.m + LANES * half);
            let scale = _mm256_loadu_ps((&raw const (*of_rows).scale[LANES * half]).cast());
            let factor = _mm256_mul_ps(scale, self.scale);
            let mut sum = _mm256_fmadd_ps(dots, factor, _mm256_loadu_ps(at));
            for (of_half, weight) in self.weights.into_iter().enumerate() {
                let min = &raw const (*of_rows).mins[of_half][LANES * half];
                sum = _mm256_fmadd_ps(_mm256_loadu_ps(min.cast()), weight, sum);
            }
            _mm256_storeu_ps(at, sum);
        }
    }
}
