//! K formats times many vectors, as bytes: what a prompt runs unless every bit is wanted.
//!
//! Activations are `x = scale * v` with `|v| <= 127` and a scale for each cell of 32 columns. The cells of weights are widened
//! to bytes, sixteen rows times four columns a vector, and multiplied by `vpdpbusd` (AVX-512, AVX-VNNI) or `vpmaddubsw`
//! (AVX2): twice as many a cycle as words ([`super::int16_gemm`]). llama.cpp rounds activations to bytes too, with a scale for 256
//! columns of such weights, so that a single large number makes 255 others inexact, and not 31.
//!
//! `vpmaddubsw` multiplies unsigned weights `u` and sums pairs as words, of which more are added as long as they fit:
//!
//! ```text
//! 4 bits   Σ u v of 16 columns               16 *  15 * 127 = 30,480 < 2¹⁵
//! 5 bits   Σ u v of  8 columns                8 *  31 * 127 = 31,496
//! 6 bits   Σ u v - 32 Σ v of 8 columns        8 *  32 * 127 = 32,512     (what overflows on the way comes back)
//! ```
//!
//! The sums of both halves of a cell are multiplied with their scales `t` (5 bits: 1) and added as 32-bit integers. All integer sums are
//! exact, so that results are the same bits on every level.

#[cfg(test)]
mod tests;

use std::arch::x86_64::*;
use std::ops::Range;

use super::avx2::quantise::largest;
use super::int8_cell::{FOURS, Int8Block, Int8Cell};
use super::int16_cell::scales_of;
use super::int16_gemm::{self, CHUNK};
use super::{avx2, avx512, vnni};
use crate::isa::{Isa, Level};
use crate::matmul::activation::scale_and_inverse;
use crate::matmul::blocked_gemm::pack::{lay_words, pack_cells};
use crate::matmul::blocked_gemm::{Blocks, Group, MicroKernel};
use crate::matmul::vectors::Vectors;
use crate::panels::format::{CELL, Quant, Scales};
use crate::panels::matrix::PackedMatrix;

/// The largest of the bytes of x.
const LARGEST: f32 = 127.0;

/// Bytes of a cell of x for each vector.
const CELL_BYTES: usize = size_of::<Int8Block<1>>();

/// Whether such weights are multiplied in this way: q3_k, q4_k, q5_k and q6_k are.
pub fn fits(quant: Quant) -> bool {
    quant.table.is_none() && matches!(quant.scales, Scales::Grouped | Scales::Halves)
}

/// Bytes that x takes.
pub fn packed_bytes(m: usize, cols: usize) -> usize {
    m * cols.div_ceil(CELL) * CELL_BYTES
}

/// Quantises blocks `range` of x and lays them out at `packed`.
///
/// # Safety
/// - `level`: AVX2.
/// - `reach`: `packed` has room for [`packed_bytes`].
/// - `own`: nobody else touches these blocks.
#[target_feature(enable = "avx2")]
pub unsafe fn pack_x(blocks: Blocks, x: &Vectors, range: Range<usize>, packed: *mut u8) {
    let sizes = (x.len() / CELL, CELL_BYTES / 4);
    // SAFETY: passes on `level`, `reach` and `own`.
    unsafe {
        pack_cells(sizes, blocks, x, (range, packed), |x, at, block| {
            let mut words = [0; CELL_BYTES / 4];
            quantise(x, &mut words);
            lay_words(&words, at, block);
        });
    }
}

/// A cell of one vector, in the order of [`Int8Block`].
#[inline]
#[target_feature(enable = "avx2")]
fn quantise(x: &[f32; CELL], out: &mut [u32; CELL_BYTES / 4]) {
    let mut floats = [_mm256_setzero_ps(); 4];
    for (i, floats) in floats.iter_mut().enumerate() {
        // SAFETY: `reach`: eight of 32 floats.
        *floats = unsafe { _mm256_loadu_ps(x.as_ptr().add(8 * i)) };
    }
    let (scale, inverse) = scale_and_inverse(largest(floats), LARGEST);
    let inverse = _mm256_set1_ps(inverse);
    let mut numbers = [_mm256_setzero_si256(); 4];
    for (number, x) in numbers.iter_mut().zip(floats) {
        *number = _mm256_cvtps_epi32(_mm256_mul_ps(x, inverse));
    }
    let [a, b, c, d] = numbers;
    // Packing works in halves of 128 bits: of each of the four come first the first four numbers, then the last four.
    let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let bytes = _mm256_permutevar8x32_epi32(bytes, order);
    // Sums of two columns, then those of every other two of a half.
    let twos = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    let sums = _mm256_add_epi16(twos, _mm256_shuffle_epi32::<0b01_00_11_10>(twos));
    let sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32::<0b10_11_00_01>(sums));
    let sums = [
        _mm256_extract_epi32::<0>(sums),
        _mm256_extract_epi32::<4>(sums),
    ];
    let (fours, rest) = out.split_at_mut(FOURS);
    // SAFETY: `reach`: eight words.
    unsafe { _mm256_storeu_si256(fours.as_mut_ptr().cast(), bytes) };
    let (of_halves, scales) = rest.split_at_mut(sums.len());
    for (out, sums) in of_halves.iter_mut().zip(sums) {
        *out = sums.cast_unsigned();
    }
    let sums = sums.map(|words| i32::from(words as i16) + (words >> 16));
    for (out, float) in scales.iter_mut().zip(scales_of(scale, sums)) {
        *out = float.to_bits();
    }
}

/// The weights as bytes, for a level of instructions.
pub struct Int8Gemm<'a> {
    /// The weights, which [fit](fits).
    pub matrix: &'a PackedMatrix,
    /// The level.
    pub level: Level,
}

impl Int8Gemm<'_> {
    fn cells(&self, chunk: usize) -> Range<usize> {
        int16_gemm::cells(chunk, self.matrix.shape.cells)
    }
}

impl MicroKernel for Int8Gemm<'_> {
    const WIDE: usize = CHUNK * size_of::<Int8Cell>();

    fn chunks(&self) -> usize {
        self.matrix.shape.cells.div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.matrix.shape.cells * CELL_BYTES
    }

    fn at_once(&self) -> usize {
        int16_gemm::at_once(self.level)
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        let (panel, quant) = (self.matrix.panel(at).as_ptr(), self.matrix.shape.quant);
        let (cells, wide) = (self.cells(chunk), wide.cast::<Int8Cell>());
        // SAFETY: `level`: `self.level` is the proof; passes on `reach`.
        unsafe {
            match self.level.isa() {
                Isa::Avx2 | Isa::AvxVnni => avx2::int8_gemm::widen(quant, panel, cells, wide),
                _ => avx512::int8_gemm::widen(quant, panel, cells, wide),
            }
        }
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let (quant, cells) = (self.matrix.shape.quant, self.cells(chunk));
        let x = x.wrapping_add(cells.start * n_vectors * CELL_BYTES);
        let n_cells = cells.len();
        // SAFETY: `level`: `self.level` is the proof; passes on `reach`.
        unsafe {
            match self.level.isa() {
                Isa::Avx2 => groups
                    .iter()
                    .for_each(|group| avx2::int8_gemm::add(quant, *group, x, n_vectors, n_cells)),
                Isa::AvxVnni => groups
                    .iter()
                    .for_each(|group| vnni::int8_gemm::add(quant, *group, x, n_vectors, n_cells)),
                _ => avx512::int8_gemm::add(quant, groups, x, n_vectors, n_cells),
            }
        }
    }
}
