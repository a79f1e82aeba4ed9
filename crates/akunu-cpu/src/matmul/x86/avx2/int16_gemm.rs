//! The loops of [`int16_gemm`](crate::matmul::x86::int16_gemm) for AVX2, with or without VNNI: a panel times up to six vectors,
//! whose integer sums stay in registers.

use std::arch::x86_64::*;
use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};

use super::cells::{CellScales, Cells, LANES};
use super::scales::OfVector;
use crate::matmul::blocked_gemm::{Group, LEAST_AVX2, MOST_AVX2};
use crate::matmul::x86::int16_cell::{Int16Block, Int16Cell, Minima, PAIRS, first_of_pair};
use crate::matmul::x86::kind::{ForCells, for_cells, has_halves};
use crate::panels::format::{CELL, Quant, ROWS, Table};

/// Widens cells of a panel.
///
/// # Safety
/// - `level`: AVX2, FMA and F16C.
/// - `reach`: the panel has the cells, of which the first begins a super-block, and `wide` has room for them.
pub unsafe fn widen(quant: Quant, panel: *const u8, cells: Range<usize>, wide: *mut Int16Cell) {
    let run = Run {
        panel,
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
    cells: Range<usize>,
    offset: i16,
    wide: *mut Int16Cell,
}

impl ForCells for Run {
    type Out = ();

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn run<const BITS: u32, const SCALES: u8>(self, table: Table) {
        let mut walk = Cells::<BITS, SCALES>::before(self.panel, self.cells.start, table);
        for c in 0..self.cells.len() {
            // SAFETY: passes on `level` and `reach`.
            unsafe {
                walk.advance();
                for half in 0..2 {
                    self.put::<BITS, SCALES>(&walk, half, self.wide.add(c));
                }
            }
        }
    }
}

impl Run {
    /// Writes the first or second eight rows of the cell that the walk is at.
    ///
    /// # Safety
    /// That of [`widen`].
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn put<const BITS: u32, const SCALES: u8>(
        &self,
        walk: &Cells<BITS, SCALES>,
        half: usize,
        wide: *mut Int16Cell,
    ) {
        let offset = _mm256_set1_epi16(self.offset);
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let CellScales {
                scale,
                of_halves,
                mins,
            } = walk.scales(half);
            let factors = [twice(of_halves[0]), twice(of_halves[1])];
            let words = (&raw mut (*wide).words).cast::<__m256i>().add(half);
            let put = |place: usize, pair, factor| {
                let mut pair = _mm256_sub_epi16(pair, offset);
                if has_halves(SCALES) {
                    pair = _mm256_mullo_epi16(pair, factor);
                }
                _mm256_storeu_si256(words.add(2 * place), pair);
            };
            for j in 0..4 {
                let fours = walk.fours(j, half);
                put(2 * j, Cells::<BITS, SCALES>::pair::<0>(fours), factors[0]);
                put(
                    2 * j + 1,
                    Cells::<BITS, SCALES>::pair::<1>(fours),
                    factors[0],
                );
                put(
                    2 * j + 8,
                    Cells::<BITS, SCALES>::pair::<2>(fours),
                    factors[1],
                );
                put(
                    2 * j + 9,
                    Cells::<BITS, SCALES>::pair::<3>(fours),
                    factors[1],
                );
            }
            _mm256_storeu_ps((&raw mut (*wide).scales.scale[LANES * half]).cast(), scale);
            for (of_half, min) in mins.into_iter().enumerate() {
                let to = &raw mut (*wide).scales.mins[of_half][LANES * half];
                _mm256_storeu_ps(to.cast(), min);
            }
        }
    }
}

/// Rounds the columns of a cell to words of at most `largest`. A row whose numbers are too small for that is zero; one with a
/// NaN has a scale of NaN.
///
/// # Safety
/// - `level`: AVX2.
/// - `reach`: `wide` points at a cell.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn round(columns: &[[f32; ROWS]; CELL], largest: f32, wide: *mut Int16Cell) {
    let positive = _mm256_set1_epi32(i32::MAX);
    for first_row in [0, LANES] {
        // SAFETY: `reach`: eight of sixteen floats.
        let column = |c: usize| unsafe { _mm256_loadu_ps(columns[c].as_ptr().add(first_row)) };
        // The bits of positive floats are ordered as they are, NaN above all.
        let mut most = _mm256_setzero_si256();
        for c in 0..CELL {
            let bits = _mm256_and_si256(_mm256_castps_si256(column(c)), positive);
            most = _mm256_max_epi32(most, bits);
        }
        let most = _mm256_castsi256_ps(most);
        let least = _mm256_set1_ps(largest * f32::MIN_POSITIVE);
        let is_there = _mm256_cmp_ps::<_CMP_NLT_UQ>(most, least);
        let largest = _mm256_set1_ps(largest);
        let inverse = _mm256_and_ps(_mm256_div_ps(largest, most), is_there);
        let scale = _mm256_and_ps(_mm256_div_ps(most, largest), is_there);
        let word = |c: usize| _mm256_cvtps_epi32(_mm256_mul_ps(column(c), inverse));
        for pair in 0..PAIRS {
            let first = first_of_pair(pair);
            let high = _mm256_slli_epi32::<16>(word(first + 2));
            let both = _mm256_blend_epi16::<0b1010_1010>(word(first), high);
            // SAFETY: passes on `level` and `reach`.
            unsafe { _mm256_storeu_si256((&raw mut (*wide).words[pair][first_row]).cast(), both) };
        }
        // SAFETY: passes on `level` and `reach`.
        unsafe { _mm256_storeu_ps((&raw mut (*wide).scales.scale[first_row]).cast(), scale) };
    }
}

/// A number of 16 bits as both words of its lane.
#[inline]
#[target_feature(enable = "avx2")]
pub fn twice(number: __m256i) -> __m256i {
    let low = _mm256_and_si256(number, _mm256_set1_epi32(0xffff));
    _mm256_or_si256(low, _mm256_slli_epi32::<16>(number))
}

/// Adds the products of `n_cells` cells of a panel with `n_vectors` vectors at `x`.
///
/// # Safety
/// - `level`: AVX2 and FMA.
/// - `reach`: the pointers point at as many cells and sums.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn add(minima: Minima, group: Group, x: *const u8, n_vectors: usize, n_cells: usize) {
    // SAFETY: passes on `level` and `reach`.
    unsafe { by_minima::<MultiplyThenAdd>(minima, group, x, n_vectors, n_cells) }
}

/// How pairs of words are multiplied and added to sums.
///
/// # Safety
/// All functions, `level`: that of the instructions. They are inlined into a function that is compiled with them.
pub trait PairDot {
    /// `sums + pairs of a times pairs of b`.
    unsafe fn dot(sums: __m256i, a: __m256i, b: __m256i) -> __m256i;
}

/// `vpmaddwd` and `vpaddd`.
struct MultiplyThenAdd;

impl PairDot for MultiplyThenAdd {
    #[inline(always)]
    unsafe fn dot(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: passes on `level`.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)) }
    }
}

/// # Safety
/// That of [`add`], and `level`: the instructions of `D`; for all functions below. They are inlined into a function that is
/// compiled with them.
#[inline(always)]
pub unsafe fn by_minima<D: PairDot>(
    minima: Minima,
    group: Group,
    x: *const u8,
    n_vectors: usize,
    n_cells: usize,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match minima {
            Minima::None => by_vectors::<D, 0>(group, x, n_vectors, n_cells),
            Minima::One => by_vectors::<D, 1>(group, x, n_vectors, n_cells),
            Minima::OfHalves => by_vectors::<D, 2>(group, x, n_vectors, n_cells),
        }
    }
}

#[inline(always)]
unsafe fn by_vectors<D: PairDot, const MINS: usize>(
    group: Group,
    x: *const u8,
    n_vectors: usize,
    n_cells: usize,
) {
    const { assert!(LEAST_AVX2 == 4 && MOST_AVX2 == 6) };
    // SAFETY: passes on `level`.
    unsafe {
        match n_vectors {
            4 => multiply::<D, MINS, 4>(group, x.cast(), n_cells),
            5 => multiply::<D, MINS, 5>(group, x.cast(), n_cells),
            6 => multiply::<D, MINS, 6>(group, x.cast(), n_cells),
            _ => unreachable!("a block of {n_vectors} vectors"),
        }
    }
}

/// A panel times `M` vectors. There are registers for the integer sums of a cell, but not for the others beside them:
/// those go through memory, which the compiler is told, since it would save and restore all of them instead.
#[inline(always)]
unsafe fn multiply<D: PairDot, const MINS: usize, const M: usize>(
    Group { wide, sums }: Group,
    x: *const Int16Block<M>,
    n_cells: usize,
) {
    // SAFETY: passes on `level`.
    unsafe {
        for c in 0..n_cells {
            compiler_fence(Ordering::SeqCst);
            let (wide, x) = (wide.cast::<Int16Cell>().add(c), x.add(c));
            let dots = integer_dots::<D, M>(wide, x);
            for (m, dots) in dots.into_iter().enumerate() {
                let scales = OfVector::<MINS>::load(&raw const (*x).scales, m);
                for (half, dots) in dots.into_iter().enumerate() {
                    let dots = _mm256_cvtepi32_ps(dots);
                    scales.add(dots, half, &raw const (*wide).scales, sums);
                }
            }
        }
    }
}

/// The integer sums of a cell, two pairs of columns a round.
#[inline(always)]
unsafe fn integer_dots<D: PairDot, const M: usize>(
    wide: *const Int16Cell,
    x: *const Int16Block<M>,
) -> [[__m256i; 2]; M] {
    // SAFETY: passes on `level`.
    unsafe {
        let mut dots = [[_mm256_setzero_si256(); 2]; M];
        let words = (&raw const (*wide).words).cast::<__m256i>();
        let pairs = (&raw const (*x).pairs).cast::<i32>();
        for k in (0..PAIRS).step_by(2) {
            add_pair::<D, M>(&mut dots, words.add(2 * k), pairs.add(M * k));
            add_pair::<D, M>(&mut dots, words.add(2 * k + 2), pairs.add(M * k + M));
        }
        dots
    }
}

/// Adds the products of a pair of columns.
#[inline(always)]
unsafe fn add_pair<D: PairDot, const M: usize>(
    dots: &mut [[__m256i; 2]; M],
    words: *const __m256i,
    pairs: *const i32,
) {
    // SAFETY: passes on `level`.
    unsafe {
        let words = [_mm256_loadu_si256(words), _mm256_loadu_si256(words.add(1))];
        for (m, dots) in dots.iter_mut().enumerate() {
            let pair = _mm256_set1_epi32(pairs.add(m).read());
            for (dots, words) in dots.iter_mut().zip(words) {
                *dots = D::dot(*dots, words, pair);
            }
        }
    }
}
