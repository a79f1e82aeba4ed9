//! A panel times a block of vectors, whose integer sums stay in registers.
//!
//! For each cell of 32 columns, with the scale s and the minimum of a row, and the scale of a vector:
//!
//! ```text
//! sum += (s * Σ w v) * scale + min * scale Σ v
//! ```
//!
//! The floats are added in the order of the products with a few vectors ([`super::gemv::add`]), so that the results are the same bits.

use std::arch::aarch64::*;
use std::ops::Range;

use super::cell::{LANES, Layout};
use super::gemv::FOURS;
use super::int16_cell::{Int16Block, Int16Cell, WORDS};
use crate::matmul::activation::Values;
use crate::matmul::blocked_gemm::pack::lay_words;
use crate::matmul::blocked_gemm::{Group, LEAST_NEON, MOST_NEON};
use crate::panels::format::{CELL, ROWS};

/// A way to multiply widened cells with blocks of vectors.
///
/// # Safety
/// All functions:
/// - `level`: that of the instructions.
/// - `reach`: the pointers point at whole cells.
pub trait BlockDot: Sized {
    /// The numbers of a widened cell.
    type Numbers: Copy;

    /// The numbers of a cell of x in the order of this way.
    fn words(values: &Values) -> [u32; WORDS];

    /// Writes these words of a vector to a block of so many: each beside that of the other vectors.
    #[inline(always)]
    fn lay(words: &[u32; WORDS], (vector, n_vectors): (usize, usize), block: &mut [u32]) {
        lay_words(words, (vector, n_vectors), block);
    }

    /// Writes the numbers of rows 4 `four` to 4 `four` + 3, which are in the order of [`super::cell::Cell::numbers`].
    unsafe fn put(numbers: [int8x16_t; 8], four: usize, to: *mut Self::Numbers);

    /// The integer sums of 4 `N` rows, from row 4 `first` on, over some of the columns.
    unsafe fn dots<const N: usize, const M: usize>(
        numbers: *const Self::Numbers,
        first: usize,
        x: *const Int16Block<M>,
        columns: Range<usize>,
    ) -> [[int32x4_t; N]; M];

    /// [`multiply`], compiled with the instructions.
    unsafe fn multiply<S: Layout, const LESS_128: bool, const M: usize>(
        group: Group,
        x: *const Int16Block<M>,
        n_cells: usize,
    );
}

/// Adds the products of `n_cells` cells of a panel with `n_vectors` vectors at `x`. `LESS_128` says that the numbers are too small by 128.
///
/// # Safety
/// - `level`: that of `W`.
/// - `reach`: the group has as many cells and sums, `x` as many cells.
pub unsafe fn add<W: BlockDot, S: Layout, const LESS_128: bool>(
    group: Group,
    x: *const u8,
    n_vectors: usize,
    n_cells: usize,
) {
    const { assert!(LEAST_NEON == 4 && MOST_NEON == 6) };
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        match n_vectors {
            4 => W::multiply::<S, LESS_128, 4>(group, x.cast(), n_cells),
            5 => W::multiply::<S, LESS_128, 5>(group, x.cast(), n_cells),
            6 => W::multiply::<S, LESS_128, 6>(group, x.cast(), n_cells),
            _ => unreachable!("a block of {n_vectors} vectors"),
        }
    }
}

/// The loop. It and all that it calls is inlined into [`BlockDot::multiply`], which is compiled with the instructions.
///
/// Where both halves of the columns have a scale, there are registers for the sums of eight rows at a time.
///
/// # Safety
/// That of [`add`], for all functions below.
#[inline(always)]
pub unsafe fn multiply<W: BlockDot, S: Layout, const LESS_128: bool, const M: usize>(
    group: Group,
    x: *const Int16Block<M>,
    n_cells: usize,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        for c in 0..n_cells {
            let wide = group.wide.cast::<Int16Cell<W::Numbers>>().add(c);
            let x = x.add(c);
            if S::SCALES.has_halves() {
                for first in (0..FOURS).step_by(FOURS / 2) {
                    let dots = halves::<W, M>(first, wide, x);
                    add_to_sums::<W, S, { FOURS / 2 }, M>(dots, first, (wide, x), group.sums);
                }
            } else {
                let dots = whole::<W, LESS_128, M>(wide, x);
                add_to_sums::<W, S, FOURS, M>(dots, 0, (wide, x), group.sums);
            }
        }
    }
}

/// The products of a cell of all rows, times their scales.
#[inline(always)]
unsafe fn whole<W: BlockDot, const LESS_128: bool, const M: usize>(
    wide: *const Int16Cell<W::Numbers>,
    x: *const Int16Block<M>,
) -> [[float32x4_t; FOURS]; M] {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let dots = W::dots::<FOURS, M>(&raw const (*wide).numbers, 0, x, 0..CELL);
        let scales = fours::<FOURS>(&(*wide).scales[0], 0);
        let mut scaled = [[vdupq_n_f32(0.0); FOURS]; M];
        for m in 0..M {
            for i in 0..FOURS {
                let mut dots = dots[m][i];
                if LESS_128 {
                    dots = vaddq_s32(dots, vdupq_n_s32((*x).starts[m]));
                }
                scaled[m][i] = vmulq_f32(vcvtq_f32_s32(dots), scales[i]);
            }
        }
        scaled
    }
}

/// The products of a cell of eight rows, times the scales of both halves.
#[inline(always)]
unsafe fn halves<W: BlockDot, const M: usize>(
    first: usize,
    wide: *const Int16Cell<W::Numbers>,
    x: *const Int16Block<M>,
) -> [[float32x4_t; FOURS / 2]; M] {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let mut scaled = [[vdupq_n_f32(0.0); FOURS / 2]; M];
        let numbers = &raw const (*wide).numbers;
        let low = W::dots::<{ FOURS / 2 }, M>(numbers, first, x, 0..CELL / 2);
        let scales = fours::<{ FOURS / 2 }>(&(*wide).scales[0], first);
        for m in 0..M {
            for i in 0..FOURS / 2 {
                scaled[m][i] = vmulq_f32(vcvtq_f32_s32(low[m][i]), scales[i]);
            }
        }
        let high = W::dots::<{ FOURS / 2 }, M>(numbers, first, x, CELL / 2..CELL);
        let scales = fours::<{ FOURS / 2 }>(&(*wide).scales[1], first);
        for m in 0..M {
            for i in 0..FOURS / 2 {
                scaled[m][i] = vfmaq_f32(scaled[m][i], vcvtq_f32_s32(high[m][i]), scales[i]);
            }
        }
        scaled
    }
}

/// Adds what a cell gives for 4 `N` rows, and its minima, to the sums.
#[inline(always)]
unsafe fn add_to_sums<W: BlockDot, S: Layout, const N: usize, const M: usize>(
    dots: [[float32x4_t; N]; M],
    first: usize,
    (wide, x): (*const Int16Cell<W::Numbers>, *const Int16Block<M>),
    sums: *mut f32,
) {
    // SAFETY: passes on `level` and `reach`.
    unsafe {
        let mins = [
            fours::<N>(&(*wide).mins[0], first),
            fours::<N>(&(*wide).mins[1], first),
        ];
        for (m, dots) in dots.into_iter().enumerate() {
            let at = sums.add(ROWS * m + LANES * first);
            let mut sums: [float32x4_t; N] = std::array::from_fn(|i| vld1q_f32(at.add(LANES * i)));
            for i in 0..N {
                sums[i] = vfmaq_n_f32(sums[i], dots[i], (*x).scales[m]);
                if S::SCALES.has_min() && S::SCALES.has_halves() {
                    let [low, high] = (*x).weights_of_half_mins;
                    sums[i] = vfmaq_n_f32(sums[i], mins[0][i], low[m]);
                    sums[i] = vfmaq_n_f32(sums[i], mins[1][i], high[m]);
                } else if S::SCALES.has_min() {
                    sums[i] = vfmaq_n_f32(sums[i], mins[0][i], (*x).weights_of_min[m]);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                vst1q_f32(at.add(LANES * i), sum);
            }
        }
    }
}

/// Numbers of `N` times four rows, from row 4 `first` on.
#[inline(always)]
unsafe fn fours<const N: usize>(of_rows: &[f32; ROWS], first: usize) -> [float32x4_t; N] {
    // SAFETY: `reach`: sixteen numbers.
    std::array::from_fn(|i| unsafe { vld1q_f32(of_rows.as_ptr().add(LANES * (first + i))) })
}
