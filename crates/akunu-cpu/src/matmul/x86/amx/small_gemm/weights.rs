//! Cells of weights as tiles of their numbers.

use std::arch::x86_64::*;

use super::vectors::{VECTORS, VectorCell};
use crate::matmul::x86::avx512::cells::Cell;
use crate::matmul::x86::kind::has_min;
use crate::panels::format::{Quant, ROWS};

/// The products of a cell: a tile of floats, or one of integers for each digit.
pub type Dots = [[[u32; ROWS]; VECTORS]; 2];

/// What a cell has beside its numbers.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct RowScales {
    /// The scale of each row.
    scale: [f32; ROWS],
    /// The minimum of each row, where the format has one.
    min: [f32; ROWS],
}

/// The number of each 4 or 5 bits as bf16. Of words that are looked up the lower five bits count; of those the fifth is that of
/// another number where a number has four.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn numbers_of_codes<const BITS: u32>(quant: Quant) -> __m512i {
    let words: [u16; 32] = std::array::from_fn(|at| {
        let number = quant.number(at as u8 & ((1 << BITS) - 1) as u8);
        ((number as f32).to_bits() >> 16) as u16
    });
    // SAFETY: `reach`: 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Makes the tile of a cell at `to`: line p holds the [pair](crate::matmul::x86::int16_cell::first_of_pair) p of columns as
/// bf16, row after row.
/// Numbers of 8 bits are a tile where they are.
///
/// # Safety
/// - `level`: AVX-512 F, BW and VL.
/// - `reach`: the cell is there, and room for a tile.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub unsafe fn make<const BITS: u32>(cell: &Cell, numbers: __m512i, to: *mut u8) {
    let put = |line: usize, words: __m512i| {
        let floats = _mm512_permutexvar_epi16(words, numbers);
        // SAFETY: `reach`: a tile has sixteen lines.
        unsafe { _mm512_storeu_si512(to.add(64 * line).cast(), floats) };
    };
    match BITS {
        4 => {
            for j in 0..4 {
                // SAFETY: `reach`: a cell of four bits has four vectors.
                let both = unsafe { _mm512_loadu_si512(cell.at.add(64 * j).cast()) };
                put(2 * j, both);
                put(2 * j + 1, _mm512_srli_epi16::<8>(both));
                put(2 * j + 8, _mm512_srli_epi16::<4>(both));
                put(2 * j + 9, _mm512_srli_epi16::<12>(both));
            }
        }
        5 => {
            for (j, numbers) in cell.numbers.into_iter().enumerate() {
                put(2 * j, numbers);
                put(2 * j + 1, _mm512_srli_epi16::<8>(numbers));
            }
        }
        _ => {}
    }
}

impl RowScales {
    /// Keeps those of a cell.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn keep<const SCALES: u8>(&mut self, cell: &Cell) {
        // SAFETY: `reach`: sixteen floats each.
        unsafe {
            _mm512_storeu_ps(self.scale.as_mut_ptr(), cell.scale);
            if has_min(SCALES) {
                _mm512_storeu_ps(self.min.as_mut_ptr(), cell.mins[0]);
            }
        }
    }

    /// Adds the products of the cell to the sums of each vector.
    ///
    /// ```text
    /// bf16     sums += dots * scale + min * Σ x
    /// bytes    sums += (256 dots of q + dots of r - offset Σ v) * (scale * scale of x) + min * Σ x
    /// ```
    ///
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn add<const BITS: u32, const SCALES: u8>(
        &self,
        dots: &Dots,
        x: &VectorCell,
        sums: &mut [__m512; VECTORS],
    ) {
        // SAFETY: `reach`: sixteen floats each.
        let [scale, min] =
            [&self.scale, &self.min].map(|floats| unsafe { _mm512_loadu_ps(floats.as_ptr()) });
        for (m, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `reach`: a line of a tile.
            let line = |tile: usize| unsafe { _mm512_loadu_si512(dots[tile][m].as_ptr().cast()) };
            if BITS == 8 {
                let both = _mm512_add_epi32(_mm512_slli_epi32::<8>(line(0)), line(1));
                let both = _mm512_add_epi32(both, _mm512_set1_epi32(x.start[m]));
                let factor = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale[m]));
                *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(both), factor, *sum);
            } else {
                *sum = _mm512_fmadd_ps(_mm512_castsi512_ps(line(0)), scale, *sum);
            }
            if has_min(SCALES) {
                *sum = _mm512_fmadd_ps(min, _mm512_set1_ps(x.weight_of_min[m]), *sum);
            }
        }
    }
}
