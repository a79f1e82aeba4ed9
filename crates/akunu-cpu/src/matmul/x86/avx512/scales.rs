//! Adding the products of a cell to the sums, with AVX-512: what all gemms with integers share.

use std::arch::x86_64::*;

use crate::matmul::x86::int16_cell::{BlockScales, WeightScales};
use crate::panels::format::ROWS;

/// The scales of a cell in registers, with so many minima.
///
/// # Safety
/// `level`: its functions are inlined into functions that are compiled with AVX-512 F.
pub struct Scales<const MINS: usize> {
    scale: __m512,
    mins: [__m512; MINS],
}

impl<const MINS: usize> Scales<MINS> {
    /// Those at `scales`.
    ///
    /// # Safety
    /// `reach`: there are scales.
    #[inline(always)]
    pub unsafe fn load(scales: *const WeightScales) -> Self {
        // SAFETY: passes on `reach`.
        unsafe {
            let mut mins = [_mm512_setzero_ps(); MINS];
            for (half, min) in mins.iter_mut().enumerate() {
                *min = _mm512_loadu_ps((&raw const (*scales).mins[half]).cast());
            }
            Scales {
                scale: _mm512_loadu_ps((&raw const (*scales).scale).cast()),
                mins,
            }
        }
    }

    /// Adds the integer products of the cell with vector `m`, `dots`, to the sums, sixteen for each vector.
    ///
    /// ```text
    /// sums += dots * (scale of the rows * scale of the vector) + minima * their weights
    /// ```
    ///
    /// # Safety
    /// `reach`: the pointers point at the scales of `M` vectors, and at their sums.
    #[inline(always)]
    pub unsafe fn add<const M: usize>(
        &self,
        dots: __m512,
        m: usize,
        of_vectors: *const BlockScales<M>,
        sums: *mut f32,
    ) {
        // SAFETY: passes on `reach`.
        unsafe {
            let at = sums.add(ROWS * m);
            let factor = _mm512_mul_ps(self.scale, _mm512_set1_ps((*of_vectors).scale[m]));
            let mut sum = _mm512_fmadd_ps(dots, factor, _mm512_loadu_ps(at));
            for (half, min) in self.mins.into_iter().enumerate() {
                let weight = match MINS {
                    1 => (*of_vectors).weights_of_min[m],
                    _ => (*of_vectors).weights_of_half_mins[half][m],
                };
                sum = _mm512_fmadd_ps(min, _mm512_set1_ps(weight), sum);
            }
            _mm512_storeu_ps(at, sum);
        }
    }
}
