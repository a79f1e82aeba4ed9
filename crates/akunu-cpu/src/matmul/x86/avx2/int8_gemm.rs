//! The loops of [`int8_gemm`](crate::matmul::x86::int8_gemm) for AVX2, with or without VNNI: a panel times up to six vectors,
//! whose integer sums stay in registers.

use std::arch::x86_64::*;
use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};

use super::cells::{CellScales, Cells, LANES};
use super::int16_gemm::twice;
use super::scales::OfVector;
use crate::matmul::blocked_gemm::{Group, LEAST_AVX2, MOST_AVX2};
use crate::matmul::x86::int8_cell::{FOURS, Int8Block, Int8Cell};
use crate::matmul::x86::kind::{GROUPED, HALVES};
use crate::panels::format::{Quant, Scales};

/// Widens cells of a panel.
///
/// # Safety
/// - `level`: AVX2, FMA and F16C.
/// - `reach`: the panel has the cells, of which the first begins a super-block, and `wide` has room for them.
pub unsafe fn widen(quant: Quant, panel: *const u8, cells: Range<usize>, wide: *mut Int8Cell) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match (quant.bits, quant.scales) {
            (4, Scales::Grouped) => widen_cells::<4, GROUPED>(panel, cells, wide),
            (4, Scales::Halves) => widen_cells::<4, HALVES>(panel, cells, wide),
            (5, Scales::Grouped) => widen_cells::<5, GROUPED>(panel, cells, wide),
            (6, Scales::Halves) => widen_cells::<6, HALVES>(panel, cells, wide),
            _ => unreachable!("{quant:?} is not multiplied as bytes"),
        }
    }
}

/// # Safety
/// That of [`widen`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn widen_cells<const BITS: u32, const SCALES: u8>(
    panel: *const u8,
    cells: Range<usize>,
    wide: *mut Int8Cell,
) {
    let mut walk = Cells::<BITS, SCALES>::before(panel, cells.start, None);
    for c in 0..cells.len() {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            walk.advance();
            for half in 0..2 {
                put(&walk, half, wide.add(c));
            }
        }
    }
}

/// Writes the first or second eight rows of the cell that the walk is at.
///
/// # Safety
/// That of [`widen`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn put<const BITS: u32, const SCALES: u8>(
    walk: &Cells<BITS, SCALES>,
    half: usize,
    wide: *mut Int8Cell,
) {
    let first_row = LANES * half;
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let CellScales {
            scale,
            of_halves,
            mins,
        } = walk.scales(half);
        for j in 0..FOURS / 2 {
            let [mut low, mut high] = walk.fours(j, half);
            if BITS == 4 {
                let four = _mm256_set1_epi8(15);
                low = _mm256_and_si256(low, four);
                high = _mm256_and_si256(_mm256_srli_epi16::<4>(high), four);
            }
            for (j, fours) in [(j, low), (FOURS / 2 + j, high)] {
                _mm256_storeu_si256((&raw mut (*wide).numbers[j][first_row]).cast(), fours);
            }
        }
        for (of_columns, mut factor) in of_halves.into_iter().enumerate() {
            if SCALES == GROUPED {
                factor = _mm256_set1_epi32(1);
            }
            let to = &raw mut (*wide).of_halves[of_columns][first_row];
            _mm256_storeu_si256(to.cast(), twice(factor));
        }
        _mm256_storeu_ps((&raw mut (*wide).scales.scale[first_row]).cast(), scale);
        for (of_columns, min) in mins.into_iter().enumerate() {
            let to = &raw mut (*wide).scales.mins[of_columns][first_row];
            _mm256_storeu_ps(to.cast(), min);
        }
    }
}

/// Adds the products of `n_cells` cells of a panel with `n_vectors` vectors at `x`.
///
/// # Safety
/// - `level`: AVX2 and FMA.
/// - `reach`: the pointers point at as many cells and sums.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn add(quant: Quant, group: Group, x: *const u8, n_vectors: usize, n_cells: usize) {
    // SAFETY: passes on `level` and `reach`.
    unsafe { by_quant::<MultiplyThenAdd>(quant, group, x, n_vectors, n_cells) }
}

/// How bytes are multiplied and added to sums, which have a form of their own.
///
/// # Safety
/// All functions, `level`: that of the instructions. They are inlined into a function that is compiled with them.
pub trait ByteDot {
    /// How many bits a weight may have so that the sums of a whole cell fit.
    const MOST_BITS: u32;
    /// Sums that begin at `minus_centre` (as words) times the sums of x.
    unsafe fn start(sums_of_x: i32, minus_centre: __m256i) -> __m256i;
    /// `sums + fours of weights times fours of x`.
    unsafe fn dot(sums: __m256i, weights: __m256i, x: __m256i) -> __m256i;
    /// The sums of a whole cell as floats.
    unsafe fn whole(sums: __m256i) -> __m256;
    /// The sums of a half of the columns as 32-bit integers, multiplied or not yet.
    unsafe fn half(sums: __m256i, factors: __m256i) -> __m256i;
    /// Both halves, multiplied and added, as floats: rounded once.
    unsafe fn both(halves: [__m256i; 2], factors: [__m256i; 2]) -> __m256;
}

/// `vpmaddubsw` and `vpaddw`: two sums of 16 bits in a lane.
struct MultiplyThenAdd;

impl ByteDot for MultiplyThenAdd {
    const MOST_BITS: u32 = 4;

    #[inline(always)]
    unsafe fn start(sums_of_x: i32, minus_centre: __m256i) -> __m256i {
        // SAFETY: passes on `level`.
        unsafe { _mm256_mullo_epi16(_mm256_set1_epi32(sums_of_x), minus_centre) }
    }

    #[inline(always)]
    unsafe fn dot(sums: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        // SAFETY: passes on `level`.
        unsafe { _mm256_add_epi16(sums, _mm256_maddubs_epi16(weights, x)) }
    }

    #[inline(always)]
    unsafe fn whole(sums: __m256i) -> __m256 {
        // SAFETY: passes on `level`.
        unsafe { _mm256_cvtepi32_ps(_mm256_madd_epi16(sums, _mm256_set1_epi16(1))) }
    }

    #[inline(always)]
    unsafe fn half(sums: __m256i, factors: __m256i) -> __m256i {
        // SAFETY: passes on `level`.
        unsafe { _mm256_madd_epi16(sums, factors) }
    }

    #[inline(always)]
    unsafe fn both([low, high]: [__m256i; 2], _: [__m256i; 2]) -> __m256 {
        // SAFETY: passes on `level`.
        unsafe { _mm256_cvtepi32_ps(_mm256_add_epi32(low, high)) }
    }
}

/// # Safety
/// That of [`add`], and `level`: the instructions of `D`; for all functions below. They are inlined into a function that is
/// compiled with them.
#[inline(always)]
pub unsafe fn by_quant<D: ByteDot>(
    quant: Quant,
    group: Group,
    x: *const u8,
    n_vectors: usize,
    n_cells: usize,
) {
    let sizes = (n_vectors, n_cells);
    let centre = quant.offset as i16;
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match quant.scales {
            Scales::Grouped if quant.bits <= D::MOST_BITS => {
                by_vectors::<D, Whole>(group, x, sizes, centre)
            }
            Scales::Grouped => by_vectors::<D, InHalves<1>>(group, x, sizes, centre),
            _ => by_vectors::<D, InHalves<0>>(group, x, sizes, centre),
        }
    }
}

#[inline(always)]
unsafe fn by_vectors<D: ByteDot, C: CellProducts>(
    group: Group,
    x: *const u8,
    (n_vectors, n_cells): (usize, usize),
    centre: i16,
) {
    const { assert!(LEAST_AVX2 == 4 && MOST_AVX2 == 6) };
    // SAFETY: passes on `level`.
    unsafe {
        match n_vectors {
            4 => multiply::<D, C, 4>(group, x.cast(), n_cells, centre),
            5 => multiply::<D, C, 5>(group, x.cast(), n_cells, centre),
            6 => multiply::<D, C, 6>(group, x.cast(), n_cells, centre),
            _ => unreachable!("a block of {n_vectors} vectors"),
        }
    }
}

/// A panel times `M` vectors. There are registers for the integer sums of a cell, but not for the others beside them:
/// those go through memory, which the compiler is told, since it would save and restore all of them instead.
#[inline(always)]
unsafe fn multiply<D: ByteDot, C: CellProducts, const M: usize>(
    Group { wide, sums }: Group,
    x: *const Int8Block<M>,
    n_cells: usize,
    centre: i16,
) {
    // SAFETY: passes on `level`.
    unsafe {
        for c in 0..n_cells {
            compiler_fence(Ordering::SeqCst);
            let wide = wide.cast::<Int8Cell>().add(c);
            C::add::<D, M>(wide, x.add(c), sums, centre);
        }
    }
}

/// How the products of a cell are summed.
///
/// # Safety
/// That of [`add`].
trait CellProducts {
    unsafe fn add<D: ByteDot, const M: usize>(
        wide: *const Int8Cell,
        x: *const Int8Block<M>,
        sums: *mut f32,
        centre: i16,
    );
}

/// All columns at once, for all sixteen rows: numbers that are not centred, with a minimum.
struct Whole;
/// One half of the columns after the other, for eight rows at a time: with so many minima.
struct InHalves<const MINS: usize>;

impl CellProducts for Whole {
    #[inline(always)]
    unsafe fn add<D: ByteDot, const M: usize>(
        wide: *const Int8Cell,
        x: *const Int8Block<M>,
        sums: *mut f32,
        _: i16,
    ) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let mut dots = [[_mm256_setzero_si256(); 2]; M];
            for j in (0..FOURS).step_by(2) {
                add_four::<D, M>(&mut dots, wide, x, j);
                add_four::<D, M>(&mut dots, wide, x, j + 1);
            }
            for (m, dots) in dots.into_iter().enumerate() {
                let scales = OfVector::<1>::load(&raw const (*x).scales, m);
                for (half, dots) in dots.into_iter().enumerate() {
                    scales.add(D::whole(dots), half, &raw const (*wide).scales, sums);
                }
            }
        }
    }
}

impl<const MINS: usize> CellProducts for InHalves<MINS> {
    #[inline(always)]
    unsafe fn add<D: ByteDot, const M: usize>(
        wide: *const Int8Cell,
        x: *const Int8Block<M>,
        sums: *mut f32,
        centre: i16,
    ) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            let minus_centre = _mm256_set1_epi16(-centre);
            for half in 0..2 {
                let mut factors = [_mm256_setzero_si256(); 2];
                let mut dots = [[_mm256_setzero_si256(); M]; 2];
                for (of_columns, (dots, factors)) in dots.iter_mut().zip(&mut factors).enumerate() {
                    let from = &raw const (*wide).of_halves[of_columns][LANES * half];
                    *factors = _mm256_loadu_si256(from.cast());
                    for (m, dots) in dots.iter_mut().enumerate() {
                        *dots = D::start((*x).sums[of_columns][m], minus_centre);
                    }
                    for j in FOURS / 2 * of_columns..FOURS / 2 * (of_columns + 1) {
                        let weights = rows(wide, j, half);
                        for (m, dots) in dots.iter_mut().enumerate() {
                            let x = _mm256_set1_epi32((*x).fours[j][m]);
                            *dots = D::dot(*dots, weights, x);
                        }
                    }
                    for dots in dots.iter_mut() {
                        *dots = D::half(*dots, *factors);
                    }
                }
                let [low, high] = dots;
                for (m, (low, high)) in low.into_iter().zip(high).enumerate() {
                    let both = D::both([low, high], factors);
                    let scales = OfVector::<MINS>::load(&raw const (*x).scales, m);
                    scales.add(both, half, &raw const (*wide).scales, sums);
                }
            }
        }
    }
}

/// Adds the products of four columns of all rows.
#[inline(always)]
unsafe fn add_four<D: ByteDot, const M: usize>(
    dots: &mut [[__m256i; 2]; M],
    wide: *const Int8Cell,
    x: *const Int8Block<M>,
    j: usize,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let weights = [rows(wide, j, 0), rows(wide, j, 1)];
        for (m, dots) in dots.iter_mut().enumerate() {
            let x = _mm256_set1_epi32((*x).fours[j][m]);
            for (dots, weights) in dots.iter_mut().zip(weights) {
                *dots = D::dot(*dots, weights, x);
            }
        }
    }
}

/// Four columns of the first or second eight rows.
#[inline(always)]
unsafe fn rows(wide: *const Int8Cell, j: usize, half: usize) -> __m256i {
    // SAFETY: passes on `level` and `reach`.
    unsafe { _mm256_loadu_si256((&raw const (*wide).numbers[j][LANES * half]).cast()) }
}
