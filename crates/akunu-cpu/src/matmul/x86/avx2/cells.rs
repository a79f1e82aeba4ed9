//! Reading the quantised cells of a panel with AVX2, eight rows at a time: numbers as pairs of words, scales as floats.
//!
//! A lane of 32 bits is a row. It holds four columns as bytes, of which a mask and a shift make two pairs of words,
//! without any shuffle: columns (0, 2) and (1, 3). The activations lie in the same order ([`super::quantise`]).

use std::arch::x86_64::*;

use crate::matmul::x86::kind::{
    AHEAD, GROUPED, HALVES, HALVES_WITH_MIN, PLAIN, TABLE, TABLE_HALVES, TABLE_POWER, TABLE_SIGNED,
    WITH_MIN, has_table, layout,
};
use crate::panels::format::{Quant, ROWS, SUPER, Table};
use akunu_types::format::Numbers;

/// Rows of a vector.
pub const LANES: usize = 8;

/// The scales of eight rows of a cell.
#[derive(Clone, Copy)]
pub struct CellScales {
    /// The scale of each row.
    pub scale: __m256,
    /// Where both halves of the columns have a scale, as integers: what `scale` is multiplied with.
    pub of_halves: [__m256i; 2],
    /// The minimum of each row in both halves of the columns; zeros where the format has none.
    pub mins: [__m256; 2],
}

/// Walks the cells of a panel.
pub struct Cells<const BITS: u32, const SCALES: u8> {
    at: *const u8,
    index: usize,
    /// The scale and the negative scale of minima of a super-block, for each half of the rows.
    of_super: [[__m256; 2]; 2],
    /// The raised numbers of a table, twice.
    table: __m256i,
    /// What a number of the table counts.
    unit: __m256,
}

impl<const BITS: u32, const SCALES: u8> Cells<BITS, SCALES> {
    const LAYOUT: Quant = layout(BITS, SCALES);
    /// Whether columns 4 j and 16 + 4 j share bytes when they are paired.
    const SHARED: bool = BITS == 4 && !has_table(SCALES);

    /// Starts before cell `first`, a multiple of [`SUPER`], of the panel at `panel`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn before(panel: *const u8, first: usize, table: Table) -> Self {
        Cells {
            at: panel
                .wrapping_add(Self::LAYOUT.super_at(first))
                .wrapping_sub(Self::LAYOUT.stride()),
            index: 0,
            of_super: [[_mm256_setzero_ps(); 2]; 2],
            table: raised(table),
            unit: _mm256_set1_ps(table.map_or(1.0, Numbers::unit)),
        }
    }

    /// Goes to the next cell, and asks for the bytes of a later one.
    ///
    /// # Safety
    /// `reach`: the panel has one more cell.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub unsafe fn advance(&mut self) {
        self.at = self.at.wrapping_add(Self::LAYOUT.stride());
        let super_bytes = Self::LAYOUT.super_bytes();
        if super_bytes > 0 && self.index.is_multiple_of(SUPER) {
            for (half, of_super) in self.of_super.iter_mut().enumerate() {
                // SAFETY: `reach`: the scales of a super-block stand before every eighth cell.
                unsafe {
                    of_super[0] = halves(self.at, 0, half);
                    if has_table(SCALES) {
                        of_super[0] = _mm256_mul_ps(of_super[0], self.unit);
                    }
                    if SCALES == GROUPED || SCALES == HALVES_WITH_MIN {
                        of_super[1] = _mm256_sub_ps(_mm256_setzero_ps(), halves(self.at, 1, half));
                    }
                }
            }
            self.at = self.at.wrapping_add(super_bytes);
        }
        for line in 0..Self::LAYOUT.stride().div_ceil(64) {
            _mm_prefetch::<_MM_HINT_T0>(self.at.wrapping_add(AHEAD + 64 * line).cast());
        }
        self.index += 1;
    }

    /// Columns 4 j to 4 j + 3, and 16 + 4 j to 19 + 4 j, of the first or second eight rows as bytes; of four bits, both
    /// in the same bytes.
    ///
    /// # Safety
    /// `reach`: the walk is at a cell.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn fours(&self, j: usize, half: usize) -> [__m256i; 2] {
        // SAFETY: `reach`: a cell of 8 bits has 8 times 64 bytes; a smaller one 4, and 64 for each bit beyond the fourth.
        let vector =
            |j: usize| unsafe { _mm256_loadu_si256(self.at.add(64 * j + 32 * half).cast()) };
        if Self::SHARED {
            return [vector(j); 2];
        }
        if BITS == 8 {
            return [vector(j), vector(4 + j)];
        }
        let (both, four) = (vector(j), _mm256_set1_epi8(15));
        let low = _mm256_and_si256(both, four);
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), four);
        if has_table(SCALES) {
            return [low, high].map(|codes| _mm256_shuffle_epi8(self.table, codes));
        }
        if BITS == 5 {
            let fifth = |j: usize| shifted(vector(4), 4 - j as i32);
            [
                with_high(low, fifth(j), 0x10),
                with_high(high, fifth(4 + j), 0x10),
            ]
        } else {
            let two = |half: usize| shifted(vector(4 + half), 4 - 2 * j as i32);
            [with_high(low, two(0), 0x30), with_high(high, two(1), 0x30)]
        }
    }

    /// A pair of columns as words: pairs 0 and 1 of the first four columns, 2 and 3 of the second.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn pair<const K: usize>(fours: [__m256i; 2]) -> __m256i {
        let four = fours[K / 2];
        let mask = _mm256_set1_epi16(if Self::SHARED { 0x0f } else { 0xff });
        match (Self::SHARED, K) {
            (true, 1) => _mm256_and_si256(_mm256_srli_epi16::<8>(four), mask),
            (true, 2) => _mm256_and_si256(_mm256_srli_epi16::<4>(four), mask),
            (true, 3) => _mm256_srli_epi16::<12>(four),
            (_, 0 | 2) => _mm256_and_si256(four, mask),
            _ => _mm256_srli_epi16::<8>(four),
        }
    }

    /// The scales of the first or second eight rows.
    ///
    /// # Safety
    /// `reach`: the walk is at a cell.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub unsafe fn scales(&self, half: usize) -> CellScales {
        let [d, min] = self.of_super[half];
        let at = self.at.wrapping_add(Self::LAYOUT.cell_bytes());
        let times = |number, factor| _mm256_mul_ps(_mm256_cvtepi32_ps(number), factor);
        let mut of_cell = CellScales {
            scale: d,
            of_halves: [_mm256_setzero_si256(); 2],
            mins: [_mm256_setzero_ps(); 2],
        };
        // SAFETY: `reach`: the scales follow the numbers.
        unsafe {
            let bytes = |array: usize| _mm_loadl_epi64(at.add(ROWS * array + LANES * half).cast());
            match SCALES {
                PLAIN | TABLE => of_cell.scale = halves(at, 0, half),
                TABLE_POWER => of_cell.scale = halves_of_powers(_mm256_cvtepu8_epi32(bytes(0))),
                TABLE_SIGNED => of_cell.scale = times(_mm256_cvtepi8_epi32(bytes(0)), d),
                WITH_MIN => {
                    of_cell.scale = halves(at, 0, half);
                    of_cell.mins = [halves(at, 1, half); 2];
                }
                GROUPED => {
                    of_cell.scale = times(_mm256_cvtepu8_epi32(bytes(0)), d);
                    of_cell.mins = [times(_mm256_cvtepu8_epi32(bytes(1)), min); 2];
                }
                HALVES | TABLE_HALVES => {
                    of_cell.of_halves = [
                        _mm256_cvtepi8_epi32(bytes(0)),
                        _mm256_cvtepi8_epi32(bytes(1)),
                    ];
                }
                _ => {
                    let four = _mm256_set1_epi32(15);
                    for array in 0..2 {
                        let both = _mm256_cvtepu8_epi32(bytes(array));
                        of_cell.of_halves[array] = _mm256_and_si256(both, four);
                        of_cell.mins[array] = times(_mm256_srli_epi32::<4>(both), min);
                    }
                }
            }
        }
        of_cell
    }
}

/// `2^(e - 128)`, as [`E8M0::half`](akunu_types::E8M0::half): below 2^-126 a single bit of the fraction.
#[inline]
#[target_feature(enable = "avx2")]
fn halves_of_powers(e: __m256i) -> __m256 {
    let normal = _mm256_sub_epi32(_mm256_slli_epi32::<23>(e), _mm256_set1_epi32(1 << 23));
    let bit = _mm256_slli_epi32::<21>(_mm256_add_epi32(e, _mm256_set1_epi32(1)));
    _mm256_castsi256_ps(_mm256_max_epi32(normal, bit))
}

/// The numbers of a table raised by 128, in both halves of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn raised(table: Table) -> __m256i {
    // SAFETY: 16 bytes.
    let numbers = table.map_or(_mm_setzero_si128(), |table| unsafe {
        _mm_loadu_si128(table.of_codes.as_ptr().cast())
    });
    _mm256_broadcastsi128_si256(_mm_xor_si128(numbers, _mm_set1_epi8(i8::MIN)))
}

/// `number | (moved & mask)`, byte by byte.
#[inline]
#[target_feature(enable = "avx2")]
fn with_high(number: __m256i, moved: __m256i, mask: i8) -> __m256i {
    _mm256_or_si256(number, _mm256_and_si256(moved, _mm256_set1_epi8(mask)))
}

/// Words shifted to the left, or by less than zero to the right; the number is known when the loop is unrolled.
#[inline]
#[target_feature(enable = "avx2")]
fn shifted(words: __m256i, left: i32) -> __m256i {
    match left {
        0 => words,
        1.. => _mm256_sll_epi16(words, _mm_cvtsi32_si128(left)),
        ..0 => _mm256_srl_epi16(words, _mm_cvtsi32_si128(-left)),
    }
}

/// The f16 of the first or second eight rows in an array of sixteen.
///
/// # Safety
/// `reach`: `at` points at the first of such arrays.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn halves(at: *const u8, array: usize, half: usize) -> __m256 {
    // SAFETY: passes on `reach`.
    unsafe {
        _mm256_cvtph_ps(_mm_loadu_si128(
            at.add(2 * (ROWS * array + LANES * half)).cast(),
        ))
    }
}
