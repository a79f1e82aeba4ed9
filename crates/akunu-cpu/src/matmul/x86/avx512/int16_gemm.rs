//! The loops of [`int16_gemm`](crate::matmul::x86::int16_gemm) for AVX-512 with VNNI: two panels times up to twelve vectors, whose
//! integer sums stay in registers.

use std::arch::x86_64::*;
use std::ops::Range;

use super::cells::Cells;
use super::scales::Scales;
use crate::matmul::blocked_gemm::{Group, LEAST_AVX512, MOST_AVX512};
use crate::matmul::x86::int16_cell::{Int16Block, Int16Cell, Minima, PAIRS, first_of_pair};
use crate::matmul::x86::kind::{ForCells, for_cells, has_halves};
use crate::panels::format::{CELL, Quant, ROWS, Table};

/// Widens cells of a panel, and fetches what lies `ahead` bytes further.
///
/// # Safety
/// - `level`: AVX-512 F, BW and VL.
/// - `reach`: the panel has the cells, of which the first begins a super-block, and `wide` has room for them.
pub unsafe fn widen(
    quant: Quant,
    (panel, ahead): (*const u8, usize),
    cells: Range<usize>,
    wide: *mut Int16Cell,
) {
    let run = Run {
        panel,
        ahead,
        cells,
        offset: quant.offset as i16,
        wide,
    };
    // SAFETY: passes on `level` and `reach`.
    unsafe { for_cells(quant, run) }
}

/// Cells on their way to words.
struct Run {
    panel: *const u8,
    ahead: usize,
    cells: Range<usize>,
    offset: i16,
    wide: *mut Int16Cell,
}

impl ForCells for Run {
    type Out = ();

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn run<const BITS: u32, const SCALES: u8>(self, table: Table) {
        let mut walk = Cells::<BITS, SCALES>::from(self.panel, self.cells.start, table);
        let offset = _mm512_set1_epi16(self.offset);
        let numbers_of_nibbles = words_of_nibbles(self.offset, table);
        for c in 0..self.cells.len() {
            // SAFETY: passes on `level` and `reach`.
            unsafe {
                let cell = walk.next_and_fetch(self.ahead);
                let factors = [twice(cell.of_halves[0]), twice(cell.of_halves[1])];
                let wide = self.wide.add(c);
                let words = (&raw mut (*wide).words).cast::<__m512i>();
                let put = |pair: usize, pairs| _mm512_storeu_si512(words.add(pair).cast(), pairs);
                if BITS == 4 && !has_halves(SCALES) {
                    for j in 0..4 {
                        let both = _mm512_loadu_si512(cell.at.add(64 * j).cast());
                        let number =
                            |nibbles| _mm512_permutexvar_epi16(nibbles, numbers_of_nibbles);
                        put(2 * j, number(both));
                        put(2 * j + 1, number(_mm512_srli_epi16::<8>(both)));
                        put(2 * j + 8, number(_mm512_srli_epi16::<4>(both)));
                        put(2 * j + 9, number(_mm512_srli_epi16::<12>(both)));
                    }
                } else {
                    for (j, numbers) in cell.numbers.into_iter().enumerate() {
                        let even = _mm512_and_si512(numbers, _mm512_set1_epi16(0xff));
                        let pairs = [even, _mm512_srli_epi16::<8>(numbers)].map(|pair| {
                            let pair = _mm512_sub_epi16(pair, offset);
                            if has_halves(SCALES) {
                                _mm512_mullo_epi16(pair, factors[j / 4])
                            } else {
                                pair
                            }
                        });
                        put(2 * j, pairs[0]);
                        put(2 * j + 1, pairs[1]);
                    }
                }
                _mm512_storeu_ps((&raw mut (*wide).scales.scale).cast(), cell.scale);
                // The second is only read where halves have minima.
                let n_mins = if has_halves(SCALES) { 2 } else { 1 };
                for (half, min) in cell.mins.into_iter().enumerate().take(n_mins) {
                    _mm512_storeu_ps((&raw mut (*wide).scales.mins[half]).cast(), min);
                }
            }
        }
    }
}

/// The number that each four bits stand for. Of words that are looked up the lower five bits count, of which the fifth is that of
/// another number.
#[inline]
#[target_feature(enable = "avx512f")]
fn words_of_nibbles(offset: i16, table: Table) -> __m512i {
    let words: [i16; 32] = std::array::from_fn(|at| match table {
        Some(table) => i16::from(table.of_codes[at & 15]),
        None => (at as i16 & 15) - offset,
    });
    // SAFETY: `reach`: 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// A number of 16 bits as both words of its lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub fn twice(number: __m512i) -> __m512i {
    let low = _mm512_and_si512(number, _mm512_set1_epi32(0xffff));
    _mm512_or_si512(low, _mm512_slli_epi32::<16>(number))
}

/// Rounds the columns of a cell to words of at most `largest`. A row whose numbers are too small for that is zero; one with a
/// NaN has a scale of NaN.
///
/// # Safety
/// - `level`: AVX-512 F.
/// - `reach`: `wide` points at a cell.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn round(columns: &[[f32; ROWS]; CELL], largest: f32, wide: *mut Int16Cell) {
    // SAFETY: `reach`: sixteen floats.
    let column = |c: usize| unsafe { _mm512_loadu_ps(columns[c].as_ptr()) };
    // The bits of positive floats are ordered as they are, NaN above all.
    let mut most = _mm512_setzero_si512();
    for c in 0..CELL {
        most = _mm512_max_epi32(most, _mm512_castps_si512(_mm512_abs_ps(column(c))));
    }
    let most = _mm512_castsi512_ps(most);
    let least = _mm512_set1_ps(largest * f32::MIN_POSITIVE);
    let is_there = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(most, least);
    let inverse = _mm512_maskz_div_ps(is_there, _mm512_set1_ps(largest), most);
    let scale = _mm512_maskz_div_ps(is_there, most, _mm512_set1_ps(largest));
    let word = |c: usize| _mm512_cvtps_epi32(_mm512_mul_ps(column(c), inverse));
    for pair in 0..PAIRS {
        let first = first_of_pair(pair);
        let low = _mm512_and_si512(word(first), _mm512_set1_epi32(0xffff));
        let both = _mm512_or_si512(low, _mm512_slli_epi32::<16>(word(first + 2)));
        // SAFETY: passes on `level` and `reach`.
        unsafe { _mm512_storeu_si512((&raw mut (*wide).words[pair]).cast(), both) };
    }
    // SAFETY: passes on `level` and `reach`.
    unsafe { _mm512_storeu_ps((&raw mut (*wide).scales.scale).cast(), scale) };
}

/// Adds the products of `n_cells` cells of one or two panels with `n_vectors` vectors at `x`.
///
/// # Safety
/// - `level`: AVX-512 F and VNNI.
/// - `reach`: the pointers point at as many cells and sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub unsafe fn add(
    minima: Minima,
    groups: &[Group],
    x: *const u8,
    n_vectors: usize,
    n_cells: usize,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match *groups {
            [a, b] => by_minima::<2>(minima, [a, b], x, n_vectors, n_cells),
            [a] => by_minima::<1>(minima, [a], x, n_vectors, n_cells),
            _ => unreachable!("one or two groups"),
        }
    }
}

/// # Safety
/// That of [`add`], for all functions below.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn by_minima<const R: usize>(
    minima: Minima,
    groups: [Group; R],
    x: *const u8,
    n_vectors: usize,
    n_cells: usize,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match minima {
            Minima::None => by_vectors::<R, 0>(groups, x, n_vectors, n_cells),
            Minima::One => by_vectors::<R, 1>(groups, x, n_vectors, n_cells),
            Minima::OfHalves => by_vectors::<R, 2>(groups, x, n_vectors, n_cells),
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn by_vectors<const R: usize, const MINS: usize>(
    groups: [Group; R],
    x: *const u8,
    n_vectors: usize,
    n_cells: usize,
) {
    const { assert!(LEAST_AVX512 == 6 && MOST_AVX512 == 12) };
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match n_vectors {
            6 => multiply::<R, MINS, 6>(groups, x.cast(), n_cells),
            7 => multiply::<R, MINS, 7>(groups, x.cast(), n_cells),
            8 => multiply::<R, MINS, 8>(groups, x.cast(), n_cells),
            9 => multiply::<R, MINS, 9>(groups, x.cast(), n_cells),
            10 => multiply::<R, MINS, 10>(groups, x.cast(), n_cells),
            11 => multiply::<R, MINS, 11>(groups, x.cast(), n_cells),
            12 => multiply::<R, MINS, 12>(groups, x.cast(), n_cells),
            _ => unreachable!("a block of {n_vectors} vectors"),
        }
    }
}

/// `R` panels times `M` vectors. There are registers for the integer sums of a cell, but not for the others beside them.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn multiply<const R: usize, const MINS: usize, const M: usize>(
    groups: [Group; R],
    x: *const Int16Block<M>,
    n_cells: usize,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        for c in 0..n_cells {
            let wide = groups.map(|group| group.wide.cast::<Int16Cell>().add(c));
            let x = x.add(c);
            let dots = integer_dots::<R, M>(wide, x);
            for (r, group) in groups.into_iter().enumerate() {
                let scales = Scales::<MINS>::load(&raw const (*wide[r]).scales);
                for (m, dots) in dots.iter().enumerate() {
                    let dots = _mm512_cvtepi32_ps(dots[r]);
                    scales.add(dots, m, &raw const (*x).scales, group.sums);
                }
            }
        }
    }
}

/// The integer sums of a cell. Inlined into a function that is compiled with the instructions.
#[inline(always)]
unsafe fn integer_dots<const R: usize, const M: usize>(
    wide: [*const Int16Cell; R],
    x: *const Int16Block<M>,
) -> [[__m512i; R]; M] {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let mut dots = [[_mm512_setzero_si512(); R]; M];
        let pairs = (&raw const (*x).pairs).cast::<i32>();
        for k in 0..PAIRS {
            let mut words = [_mm512_setzero_si512(); R];
            for (words, wide) in words.iter_mut().zip(wide) {
                *words = _mm512_loadu_si512((&raw const (*wide).words[k]).cast());
            }
            for (m, dots) in dots.iter_mut().enumerate() {
                let pair = _mm512_set1_epi32(pairs.add(M * k + m).read());
                for (dots, words) in dots.iter_mut().zip(words) {
                    *dots = _mm512_dpwssd_epi32(*dots, words, pair);
                }
            }
        }
        dots
    }
}
