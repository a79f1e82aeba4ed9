//! K formats times many vectors, as bytes: what a prompt runs unless every bit is wanted.
//!
//! Activations are `x = scale * v` with `|v| <= 127` and a scale for each cell of 32 columns. The cells of weights are widened
//! to bytes, sixteen rows times four columns a vector, and multiplied by `vpdpbusd` (AVX-512, AVX-VNNI) or `vpmaddubsw`
//! (AVX2): twice as many a cycle as words ([`super::pairs`]). llama.cpp rounds activations to bytes too, with a scale for 256
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

mod avx2;
mod avx512;
mod cells;
#[cfg(test)]
mod tests;

use std::arch::x86_64::*;
use std::ops::Range;

use self::cells::{BlockBytes, FOURS, WideBytes};
use super::activation::scale_and_inverse;
use super::blocked::pack::{lay_words, pack_cells};
use super::blocked::{Blocks, Form, Group};
use super::pairs::{self, CHUNK};
use super::shape::Shape;
use super::wide::scales_of;
use super::words::largest;
use crate::isa::Isa;
use crate::panels::format::{CELL, Quant, Scales};
use crate::panels::matrix::PackedMatrix;

/// The largest of the bytes of x.
const LARGEST: f32 = 127.0;

/// Bytes of a cell of x for each vector.
const CELL_BYTES: usize = size_of::<BlockBytes<1>>();

/// Whether such weights are multiplied in this way: q3_k, q4_k, q5_k and q6_k are.
pub fn fits(quant: Quant) -> bool {
    matches!(quant.scales, Scales::Grouped | Scales::Halves)
}

/// Bytes that x takes.
pub fn packed_bytes(m: usize, cols: usize) -> usize {
    m * cols.div_ceil(CELL) * CELL_BYTES
}

/// Quantises blocks `range` of x and lays them out at `packed`.
///
/// # Safety
/// The processor must have AVX2. `packed` has room for [`packed_bytes`], and nobody else touches these blocks.
#[target_feature(enable = "avx2")]
pub unsafe fn pack_x(
    cols: usize,
    (shape, blocks): (&Shape, Blocks),
    x: &[f32],
    range: Range<usize>,
    packed: *mut u8,
) {
    let sizes = (cols / CELL, CELL_BYTES / 4);
    // SAFETY: as the caller says.
    unsafe {
        pack_cells(
            sizes,
            (shape, blocks),
            x,
            (range, packed),
            |x, at, block| {
                let mut words = [0; CELL_BYTES / 4];
                quantise(x, &mut words);
                lay_words(&words, at, block);
            },
        );
    }
}

/// A cell of one vector, in the order of [`BlockBytes`].
///
/// # Safety
/// The processor must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn quantise(x: &[f32; CELL], out: &mut [u32; CELL_BYTES / 4]) {
    let mut floats = [_mm256_setzero_ps(); 4];
    for (i, floats) in floats.iter_mut().enumerate() {
        // SAFETY: eight of 32 floats.
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
    // SAFETY: eight words.
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
pub struct Bytes<'a> {
    /// The weights, which [fit](fits).
    pub matrix: &'a PackedMatrix,
    /// The level.
    pub isa: Isa,
}

impl Bytes<'_> {
    fn cells(&self, chunk: usize) -> Range<usize> {
        pairs::cells(chunk, self.matrix.shape.cells)
    }
}

impl Form for Bytes<'_> {
    const WIDE: usize = CHUNK * size_of::<WideBytes>();

    fn chunks(&self) -> usize {
        self.matrix.shape.cells.div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.matrix.shape.cells * CELL_BYTES
    }

    fn at_once(&self) -> usize {
        pairs::at_once(self.isa)
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        let (panel, quant) = (self.matrix.panel(at).as_ptr(), self.matrix.shape.quant);
        let (cells, wide) = (self.cells(chunk), wide.cast::<WideBytes>());
        // SAFETY: the CPU has the instructions, and there is room for the cells.
        unsafe {
            match self.isa {
                Isa::Avx2 | Isa::AvxVnni => avx2::widen(quant, panel, cells, wide),
                _ => avx512::widen(quant, panel, cells, wide),
            }
        }
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let (quant, cells) = (self.matrix.shape.quant, self.cells(chunk));
        let x = x.wrapping_add(cells.start * n_vectors * CELL_BYTES);
        let n_cells = cells.len();
        // SAFETY: as the caller says.
        unsafe {
            match self.isa {
                Isa::Avx2 => groups
                    .iter()
                    .for_each(|group| avx2::add(quant, *group, x, n_vectors, n_cells)),
                Isa::AvxVnni => groups
                    .iter()
                    .for_each(|group| avx2::add_vnni(quant, *group, x, n_vectors, n_cells)),
                _ => avx512::add(quant, groups, x, n_vectors, n_cells),
            }
        }
    }
}
