//! Reading the quantised cells of a panel with AVX-512: numbers as bytes, scales as floats.

use std::arch::x86_64::*;

use super::format::{CELL, ROWS, SUPER};

/// [`Scales::Plain`](super::format::Scales) as a const parameter.
pub const PLAIN: u8 = 0;
/// [`Scales::WithMin`](super::format::Scales) as a const parameter.
pub const WITH_MIN: u8 = 1;
/// [`Scales::Grouped`](super::format::Scales) as a const parameter.
pub const GROUPED: u8 = 2;
/// [`Scales::Halves`](super::format::Scales) as a const parameter.
pub const HALVES: u8 = 3;

/// Bytes ahead of the present cell that are fetched.
pub const AHEAD: usize = 2048;

/// Bytes of a super-block's scales.
const fn super_bytes(scales: u8) -> usize {
    match scales {
        GROUPED => 4 * ROWS,
        HALVES => 2 * ROWS,
        _ => 0,
    }
}

/// One cell in registers.
pub struct Cell {
    /// Vector j holds columns 4 j to 4 j + 3 of each row.
    pub numbers: [__m512i; 8],
    /// The scale of each row; of the first half of the columns, where halves differ.
    pub scale: __m512,
    /// The minimum of each row, or the scale of the second half of the columns; else zeros.
    pub second: __m512,
}

/// Walks the cells of a panel.
pub struct Cells<const BITS: u32, const SCALES: u8> {
    at: *const u8,
    index: usize,
    of_super: [__m512; 2],
}

impl<const BITS: u32, const SCALES: u8> Cells<BITS, SCALES> {
    const CELL_BYTES: usize = BITS as usize * ROWS * CELL / 8;
    const SCALE_BYTES: usize = if SCALES == WITH_MIN { 4 } else { 2 } * ROWS;
    const STRIDE: usize = Self::CELL_BYTES + Self::SCALE_BYTES;

    /// Starts at cell `first`, a multiple of [`SUPER`], of the panel at `panel`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn from(panel: *const u8, first: usize) -> Self {
        let bytes = first * Self::STRIDE + first / SUPER * super_bytes(SCALES);
        Cells {
            at: panel.wrapping_add(bytes),
            index: 0,
            of_super: [_mm512_setzero_ps(); 2],
        }
    }

    /// The next cell.
    ///
    /// # Safety
    /// The panel has one more cell.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub unsafe fn next(&mut self) -> Cell {
        // SAFETY: a cell, its scales, and at every eighth the scales of a super-block before it, are there
        // as the caller says; a prefetch may name any address.
        unsafe {
            if super_bytes(SCALES) > 0 && self.index.is_multiple_of(SUPER) {
                self.of_super[0] = halves(self.at);
                if SCALES == GROUPED {
                    let min = halves(self.at.add(2 * ROWS));
                    self.of_super[1] = _mm512_sub_ps(_mm512_setzero_ps(), min);
                }
                self.at = self.at.add(super_bytes(SCALES));
            }
            for line in 0..Self::STRIDE.div_ceil(64) {
                _mm_prefetch::<_MM_HINT_T0>(self.at.wrapping_add(AHEAD + 64 * line).cast());
            }
            let numbers = widen::<BITS>(self.at);
            let (scale, second) = self.scales(self.at.add(Self::CELL_BYTES));
            self.at = self.at.add(Self::STRIDE);
            self.index += 1;
            Cell {
                numbers,
                scale,
                second,
            }
        }
    }

    /// # Safety
    /// `at` points at a cell's scales.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn scales(&self, at: *const u8) -> (__m512, __m512) {
        let [d, min] = self.of_super;
        // SAFETY: as the caller says.
        unsafe {
            let bytes = |array| _mm_loadu_si128(at.cast::<__m128i>().add(array));
            match SCALES {
                PLAIN => (halves(at), _mm512_setzero_ps()),
                WITH_MIN => (halves(at), halves(at.add(2 * ROWS))),
                GROUPED => {
                    let wide = |array| _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes(array)));
                    (_mm512_mul_ps(wide(0), d), _mm512_mul_ps(wide(1), min))
                }
                _ => {
                    let wide = |array| _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(array)));
                    (_mm512_mul_ps(wide(0), d), _mm512_mul_ps(wide(1), d))
                }
            }
        }
    }
}

/// A cell's numbers as bytes.
///
/// # Safety
/// `cell` points at a whole cell.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn widen<const BITS: u32>(cell: *const u8) -> [__m512i; 8] {
    let mut numbers = [_mm512_setzero_si512(); 8];
    // SAFETY: a cell of 8 bits has 8 vectors; a smaller one 4, and 8 words for each bit beyond the fourth.
    unsafe {
        if BITS == 8 {
            for (j, numbers) in numbers.iter_mut().enumerate() {
                *numbers = _mm512_loadu_si512(cell.add(64 * j).cast());
            }
            return numbers;
        }
        let four = _mm512_set1_epi8(15);
        for j in 0..4 {
            let both = _mm512_loadu_si512(cell.add(64 * j).cast());
            numbers[j] = _mm512_and_si512(both, four);
            numbers[4 + j] = _mm512_and_si512(_mm512_srli_epi16::<4>(both), four);
        }
        for bit in 4..BITS {
            let value = _mm512_set1_epi8(1 << bit);
            let plane = cell.add(64 * bit as usize).cast::<u64>();
            for (j, numbers) in numbers.iter_mut().enumerate() {
                let rows = plane.add(j).read_unaligned();
                *numbers = _mm512_mask_add_epi8(*numbers, rows, *numbers, value);
            }
        }
    }
    numbers
}

/// Sixteen f16 as f32.
///
/// # Safety
/// `at` points at 32 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn halves(at: *const u8) -> __m512 {
    // SAFETY: as the caller says.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(at.cast()) })
}
