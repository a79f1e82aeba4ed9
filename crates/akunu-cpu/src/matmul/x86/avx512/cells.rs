//! Reading the quantised cells of a panel with AVX-512: numbers as bytes, scales as floats.

use std::arch::x86_64::*;

use crate::matmul::x86::kind::{
    AHEAD, GROUPED, HALVES, HALVES_WITH_MIN, PLAIN, TABLE, TABLE_HALVES, TABLE_POWER, TABLE_SIGNED,
    WITH_MIN, has_halves, has_table, layout,
};
use crate::panels::format::{Quant, ROWS, SUPER, Table};
use akunu_types::format::Numbers;

/// One cell in registers.
pub struct Cell {
    /// Where it lies.
    pub at: *const u8,
    /// Vector j holds columns 4 j to 4 j + 3 of each row.
    pub numbers: [__m512i; 8],
    /// The scale of each row.
    pub scale: __m512,
    /// Where both halves of the columns have a scale, as integers: what `scale` is multiplied with.
    pub of_halves: [__m512i; 2],
    /// The minimum of each row in both halves of the columns; zeros where the format has none.
    pub mins: [__m512; 2],
}

/// Walks the cells of a panel.
pub struct Cells<const BITS: u32, const SCALES: u8> {
    at: *const u8,
    index: usize,
    of_super: [__m512; 2],
    /// The raised numbers of a table, four times.
    table: __m512i,
    /// What a number of the table counts.
    unit: __m512,
}

impl<const BITS: u32, const SCALES: u8> Cells<BITS, SCALES> {
    const LAYOUT: Quant = layout(BITS, SCALES);

    /// Starts at cell `first`, a multiple of [`SUPER`], of the panel at `panel`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn from(panel: *const u8, first: usize, table: Table) -> Self {
        Cells {
            at: panel.wrapping_add(Self::LAYOUT.super_at(first)),
            index: 0,
            of_super: [_mm512_setzero_ps(); 2],
            table: raised(table),
            unit: _mm512_set1_ps(table.map_or(1.0, Numbers::unit)),
        }
    }

    /// The next cell.
    ///
    /// # Safety
    /// `reach`: the panel has one more cell.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub unsafe fn next(&mut self) -> Cell {
        // SAFETY: passes on `reach`.
        unsafe { self.next_and_fetch(AHEAD) }
    }

    /// The next cell, for those who do not read the panels from front to back: memory `ahead` bytes further is fetched.
    ///
    /// # Safety
    /// `reach`: the panel has one more cell.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub unsafe fn next_and_fetch(&mut self, ahead: usize) -> Cell {
        // SAFETY: a cell, its scales, and at every eighth the scales of a super-block before it, are there
        // as the caller says; a prefetch may name any address.
        unsafe {
            let super_bytes = Self::LAYOUT.super_bytes();
            if super_bytes > 0 && self.index.is_multiple_of(SUPER) {
                self.of_super[0] = halves(self.at);
                if has_table(SCALES) {
                    self.of_super[0] = _mm512_mul_ps(self.of_super[0], self.unit);
                }
                if SCALES == GROUPED || SCALES == HALVES_WITH_MIN {
                    let min = halves(self.at.add(2 * ROWS));
                    self.of_super[1] = _mm512_sub_ps(_mm512_setzero_ps(), min);
                }
                self.at = self.at.add(super_bytes);
            }
            // Into the second cache: more requests can be on their way to it than to the first.
            for line in 0..Self::LAYOUT.stride().div_ceil(64) {
                _mm_prefetch::<_MM_HINT_T1>(
                    self.at.wrapping_add(ahead).wrapping_add(64 * line).cast(),
                );
            }
            let mut numbers = widen::<BITS>(self.at);
            if has_table(SCALES) {
                numbers = numbers.map(|codes| _mm512_shuffle_epi8(self.table, codes));
            }
            let cell = self.with_scales(numbers);
            self.at = self.at.add(Self::LAYOUT.stride());
            self.index += 1;
            cell
        }
    }

    /// # Safety
    /// `reach`: `self.at` points at a cell and its scales.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn with_scales(&self, numbers: [__m512i; 8]) -> Cell {
        let [d, min] = self.of_super;
        let times = |number, factor| _mm512_mul_ps(_mm512_cvtepi32_ps(number), factor);
        let mut cell = Cell {
            at: self.at,
            numbers,
            scale: d,
            of_halves: [_mm512_setzero_si512(); 2],
            mins: [_mm512_setzero_ps(); 2],
        };
        // SAFETY: passes on `reach`.
        unsafe {
            let at = self.at.add(Self::LAYOUT.cell_bytes());
            let bytes = |array| _mm_loadu_si128(at.cast::<__m128i>().add(array));
            match SCALES {
                PLAIN | TABLE => cell.scale = halves(at),
                TABLE_POWER => cell.scale = halves_of_powers(_mm512_cvtepu8_epi32(bytes(0))),
                TABLE_SIGNED => cell.scale = times(_mm512_cvtepi8_epi32(bytes(0)), d),
                WITH_MIN => {
                    cell.scale = halves(at);
                    cell.mins = [halves(at.add(2 * ROWS)); 2];
                }
                GROUPED => {
                    cell.scale = times(_mm512_cvtepu8_epi32(bytes(0)), d);
                    cell.mins = [times(_mm512_cvtepu8_epi32(bytes(1)), min); 2];
                }
                HALVES | TABLE_HALVES => {
                    cell.of_halves = [0, 1].map(|array| _mm512_cvtepi8_epi32(bytes(array)));
                }
                _ => {
                    let both = [0, 1].map(|array| _mm512_cvtepu8_epi32(bytes(array)));
                    let four = _mm512_set1_epi32(15);
                    cell.of_halves = both.map(|both| _mm512_and_si512(both, four));
                    cell.mins = both.map(|both| times(_mm512_srli_epi32::<4>(both), min));
                }
            }
        }
        cell
    }
}

impl Cell {
    /// The scale of each row in both halves of the columns.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn scales<const SCALES: u8>(&self) -> [__m512; 2] {
        if has_halves(SCALES) {
            self.of_halves
                .map(|of_half| _mm512_mul_ps(_mm512_cvtepi32_ps(of_half), self.scale))
        } else {
            [self.scale; 2]
        }
    }
}

/// `2^(e - 128)`, as [`E8M0::half`](akunu_types::E8M0::half): below 2^-126 a single bit of the fraction.
#[inline]
#[target_feature(enable = "avx512f")]
fn halves_of_powers(e: __m512i) -> __m512 {
    let normal = _mm512_sub_epi32(_mm512_slli_epi32::<23>(e), _mm512_set1_epi32(1 << 23));
    let bit = _mm512_slli_epi32::<21>(_mm512_add_epi32(e, _mm512_set1_epi32(1)));
    _mm512_castsi512_ps(_mm512_max_epi32(normal, bit))
}

/// The numbers of a table raised by 128, in each 128 bits of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn raised(table: Table) -> __m512i {
    // SAFETY: 16 bytes.
    let numbers = table.map_or(_mm_setzero_si128(), |table| unsafe {
        _mm_loadu_si128(table.of_codes.as_ptr().cast())
    });
    _mm512_broadcast_i32x4(_mm_xor_si128(numbers, _mm_set1_epi8(i8::MIN)))
}

/// A cell's codes as bytes.
///
/// # Safety
/// `reach`: `cell` points at a whole cell.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn widen<const BITS: u32>(cell: *const u8) -> [__m512i; 8] {
    // SAFETY: `reach`: a cell of 8 bits has 8 vectors; a smaller one 4, and one for each bit beyond the fourth.
    let vector = |j: usize| unsafe { _mm512_loadu_si512(cell.add(64 * j).cast()) };
    if BITS == 8 {
        return [0, 1, 2, 3, 4, 5, 6, 7].map(vector);
    }
    let mut numbers = [_mm512_setzero_si512(); 8];
    let four = _mm512_set1_epi8(15);
    for j in 0..4 {
        let both = vector(j);
        numbers[j] = _mm512_and_si512(both, four);
        numbers[4 + j] = _mm512_and_si512(_mm512_srli_epi16::<4>(both), four);
    }
    if BITS > 4 {
        let high = _mm512_set1_epi8(if BITS == 5 { 0x10 } else { 0x30 });
        for (j, number) in numbers.iter_mut().enumerate() {
            let (from, shift) = match BITS {
                5 => (4, 4 - j as i32),
                _ => (4 + j / 4, 4 - 2 * (j % 4) as i32),
            };
            // number | (moved & high)
            let moved = shifted(vector(from), shift);
            *number = _mm512_ternarylogic_epi32::<0xf8>(*number, moved, high);
        }
    }
    numbers
}

/// Words shifted to the left, or by less than zero to the right; the number is known when the loop is unrolled.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn shifted(words: __m512i, left: i32) -> __m512i {
    match left {
        0 => words,
        1.. => _mm512_sll_epi16(words, _mm_cvtsi32_si128(left)),
        ..0 => _mm512_srl_epi16(words, _mm_cvtsi32_si128(-left)),
    }
}

/// Sixteen f16 as f32.
///
/// # Safety
/// `reach`: `at` points at 32 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn halves(at: *const u8) -> __m512 {
    // SAFETY: passes on `reach`.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(at.cast()) })
}
