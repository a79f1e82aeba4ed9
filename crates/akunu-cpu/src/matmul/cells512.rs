//! Reading the quantised cells of a panel with AVX-512: numbers as bytes, scales as floats.

use std::arch::x86_64::*;

use super::format::{CELL, Quant, ROWS, SUPER, Scales};

/// [`Scales::Plain`](super::format::Scales) as a const parameter.
pub const PLAIN: u8 = 0;
/// [`Scales::WithMin`](super::format::Scales) as a const parameter.
pub const WITH_MIN: u8 = 1;
/// [`Scales::Grouped`](super::format::Scales) as a const parameter.
pub const GROUPED: u8 = 2;
/// [`Scales::Halves`](super::format::Scales) as a const parameter.
pub const HALVES: u8 = 3;
/// [`Scales::HalvesWithMin`](super::format::Scales) as a const parameter.
pub const HALVES_WITH_MIN: u8 = 4;

/// What is compiled for each kind of cell that a weight format has.
pub trait ForCells {
    /// What it gives.
    type Out;

    /// The form for one kind.
    ///
    /// # Safety
    /// That of the implementation.
    unsafe fn run<const BITS: u32, const SCALES: u8>(self) -> Self::Out;
}

/// Runs the form for the cells of a weight format: the one table of their kinds.
///
/// # Safety
/// That of the implementation.
#[inline]
pub unsafe fn for_cells<F: ForCells>(quant: Quant, form: F) -> F::Out {
    // SAFETY: as the caller says.
    unsafe {
        match (quant.bits, quant.scales) {
            (4, Scales::Plain) => form.run::<4, PLAIN>(),
            (4, Scales::WithMin) => form.run::<4, WITH_MIN>(),
            (4, Scales::Grouped) => form.run::<4, GROUPED>(),
            (4, Scales::Halves) => form.run::<4, HALVES>(),
            (4, Scales::HalvesWithMin) => form.run::<4, HALVES_WITH_MIN>(),
            (5, Scales::Plain) => form.run::<5, PLAIN>(),
            (5, Scales::WithMin) => form.run::<5, WITH_MIN>(),
            (5, Scales::Grouped) => form.run::<5, GROUPED>(),
            (6, Scales::WithMin) => form.run::<6, WITH_MIN>(),
            (6, Scales::Halves) => form.run::<6, HALVES>(),
            (8, Scales::Plain) => form.run::<8, PLAIN>(),
            (8, Scales::WithMin) => form.run::<8, WITH_MIN>(),
            other => unreachable!("no weight format has cells of {other:?}"),
        }
    }
}

/// Bytes ahead of the present cell that are fetched.
pub const AHEAD: usize = 8192;

/// Bytes of a super-block's scales.
const fn super_bytes(scales: u8) -> usize {
    match scales {
        GROUPED | HALVES_WITH_MIN => 4 * ROWS,
        HALVES => 2 * ROWS,
        _ => 0,
    }
}

/// One cell in registers.
pub struct Cell {
    /// Vector j holds columns 4 j to 4 j + 3 of each row.
    pub numbers: [__m512i; 8],
    /// The scale of each row in both halves of the columns.
    pub scales: [__m512; 2],
    /// The minimum of each row in both halves of the columns; zeros where the format has none.
    pub mins: [__m512; 2],
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
                if SCALES == GROUPED || SCALES == HALVES_WITH_MIN {
                    let min = halves(self.at.add(2 * ROWS));
                    self.of_super[1] = _mm512_sub_ps(_mm512_setzero_ps(), min);
                }
                self.at = self.at.add(super_bytes(SCALES));
            }
            // Into the second cache: more requests can be on their way to it than to the first.
            for line in 0..Self::STRIDE.div_ceil(64) {
                _mm_prefetch::<_MM_HINT_T1>(self.at.wrapping_add(AHEAD + 64 * line).cast());
            }
            let numbers = widen::<BITS>(self.at);
            let (scales, mins) = self.scales(self.at.add(Self::CELL_BYTES));
            self.at = self.at.add(Self::STRIDE);
            self.index += 1;
            Cell {
                numbers,
                scales,
                mins,
            }
        }
    }

    /// # Safety
    /// `at` points at a cell's scales.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn scales(&self, at: *const u8) -> ([__m512; 2], [__m512; 2]) {
        let [d, min] = self.of_super;
        let none = [_mm512_setzero_ps(); 2];
        let times = |number, factor| _mm512_mul_ps(_mm512_cvtepi32_ps(number), factor);
        // SAFETY: as the caller says.
        unsafe {
            let bytes = |array| _mm_loadu_si128(at.cast::<__m128i>().add(array));
            match SCALES {
                PLAIN => ([halves(at); 2], none),
                WITH_MIN => ([halves(at); 2], [halves(at.add(2 * ROWS)); 2]),
                GROUPED => {
                    let [scale, of_min] = [0, 1].map(|array| _mm512_cvtepu8_epi32(bytes(array)));
                    ([times(scale, d); 2], [times(of_min, min); 2])
                }
                HALVES => {
                    let scales = [0, 1].map(|array| _mm512_cvtepi8_epi32(bytes(array)));
                    (scales.map(|scale| times(scale, d)), none)
                }
                _ => {
                    let both = [0, 1].map(|array| _mm512_cvtepu8_epi32(bytes(array)));
                    let low = |both| _mm512_and_si512(both, _mm512_set1_epi32(15));
                    (
                        both.map(|both| times(low(both), d)),
                        both.map(|both| times(_mm512_srli_epi32::<4>(both), min)),
                    )
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
