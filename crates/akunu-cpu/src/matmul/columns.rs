//! Floating-point weights times many vectors, as f32.
//!
//! A chunk of sixteen rows is widened to f32 and turned, so that the sixteen numbers of a column lie side by side. Then
//!
//! ```text
//! y[m][n] += x[m][k] * w[k][n]
//! ```
//!
//! for one column k after the other, where the n are lanes and the sums of a block of vectors stay in registers. In x the
//! numbers that a column wants lie side by side too.

#[cfg(test)]
mod tests;

use std::ops::Range;

use half::{bf16, f16};

use super::blocked::{Blocks, Form, Group, LEAST_256, LEAST_512, MOST_256, MOST_512};
use super::rows::{Float, Rows};
use super::shape::Shape;
use crate::isa::Isa;
use crate::number::Number;
use crate::panels::format::ROWS;
use crate::simd::{self, Lanes, WithLanes, prefetch, transpose};

/// Columns of a chunk: two groups of them, 16 KiB, and a block of vectors fit the first cache.
const CHUNK: usize = 128;

/// Bytes that x takes.
pub fn packed_bytes(m: usize, cols: usize) -> usize {
    m * cols * size_of::<f32>()
}

/// Lays blocks `range` of x out at `packed`: number `k * n + i` of a block of n is column k of its vector i.
///
/// # Safety
/// `packed` has room for [`packed_bytes`], and nobody else touches these blocks.
pub unsafe fn pack_x(
    cols: usize,
    (shape, blocks): (&Shape, Blocks),
    x: &[f32],
    range: Range<usize>,
    packed: *mut u8,
) {
    for block in range {
        let vectors = blocks.vectors(block);
        let n = vectors.len();
        // SAFETY: the block's part of the memory, which is aligned for floats.
        let out = unsafe {
            let first = packed.cast::<f32>().add(vectors.start * cols);
            std::slice::from_raw_parts_mut(first, cols * n)
        };
        for (i, vector) in vectors.enumerate() {
            let numbers = &x[vector * shape.lda..][..cols];
            let places = out[i..].iter_mut().step_by(n);
            places.zip(numbers).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Widens columns of a group of rows: the matrix, the group, the columns, and room for sixteen numbers a column.
pub type Widen = unsafe fn(&Rows, usize, Range<usize>, *mut f32);
/// Adds the products of one or two groups with a block of vectors: those, x, how many columns, how many vectors.
pub type Add = unsafe fn(&[Group], *const f32, usize, usize);

/// A call of [`Widen`].
struct Widening<'a>(&'a Rows<'a>, usize, Range<usize>, *mut f32);
/// A call of [`Add`].
struct Adding<'a>(&'a [Group], *const f32, usize, usize);

impl WithLanes for Widening<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Widening(rows, at, columns, wide) = self;
        // SAFETY: as the caller of `Widen` says.
        unsafe { widen::<L>(rows, at, columns, wide) }
    }
}

impl WithLanes for Adding<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Adding(groups, x, n_columns, n_vectors) = self;
        // SAFETY: as the caller of `Add` says.
        unsafe { add::<L>(groups, x, n_columns, n_vectors) }
    }
}

/// The weights as columns of f32.
pub struct Columns<'a> {
    rows: &'a Rows<'a>,
    widen: Widen,
    add: Add,
    at_once: usize,
}

impl<'a> Columns<'a> {
    /// The weights, with the functions of a level.
    pub fn of(rows: &'a Rows<'a>, isa: Isa) -> Columns<'a> {
        let (widen, add, at_once): (Widen, Add, usize) = match isa {
            Isa::AvxVnni | Isa::Avx2 => (
                // SAFETY: as the caller says.
                |rows, at, of, wide| unsafe { simd::avx2::run(Widening(rows, at, of, wide)) },
                // SAFETY: as the caller says.
                |groups, x, n, m| unsafe { simd::avx2::run(Adding(groups, x, n, m)) },
                1,
            ),
            _ => (
                // SAFETY: as the caller says.
                |rows, at, of, wide| unsafe { simd::avx512::run(Widening(rows, at, of, wide)) },
                // SAFETY: as the caller says.
                |groups, x, n, m| unsafe { simd::avx512::run(Adding(groups, x, n, m)) },
                2,
            ),
        };
        Columns {
            rows,
            widen,
            add,
            at_once,
        }
    }

    /// The columns of a chunk.
    fn columns(&self, chunk: usize) -> Range<usize> {
        let first = chunk * CHUNK;
        first..self.rows.cols.min(first + CHUNK)
    }
}

impl Form for Columns<'_> {
    const WIDE: usize = CHUNK * ROWS * size_of::<f32>();

    fn chunks(&self) -> usize {
        self.rows.cols.div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.rows.cols * size_of::<f32>()
    }

    fn at_once(&self) -> usize {
        self.at_once
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { (self.widen)(self.rows, at, self.columns(chunk), wide.cast()) }
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let columns = self.columns(chunk);
        let x = x.cast::<f32>().wrapping_add(columns.start * n_vectors);
        // SAFETY: as the caller says.
        unsafe { (self.add)(groups, x, columns.len(), n_vectors) }
    }
}

/// [`Widen`].
///
/// # Safety
/// The CPU has the instructions of `L`; `wide` has room for the columns.
#[inline(always)]
pub unsafe fn widen<L: Lanes>(rows: &Rows, at: usize, columns: Range<usize>, wide: *mut f32) {
    let float = rows.float;
    let rows = std::array::from_fn(|n| rows.row(ROWS * at + n));
    // SAFETY: as the caller says.
    unsafe {
        match float {
            Float::F16 => widen_numbers::<L, f16>(rows, columns, wide),
            Float::BF16 => widen_numbers::<L, bf16>(rows, columns, wide),
            Float::F32 => widen_numbers::<L, f32>(rows, columns, wide),
        }
    }
}

/// # Safety
/// As [`widen`].
#[inline(always)]
unsafe fn widen_numbers<L: Lanes, T: Number>(
    rows: [*const u8; ROWS],
    columns: Range<usize>,
    wide: *mut f32,
) {
    let mut block = [0f32; ROWS * ROWS];
    for first in (0..ROWS).step_by(L::N) {
        for k in columns.clone().step_by(L::N) {
            let n = L::N.min(columns.end - k);
            for (r, block) in block.chunks_exact_mut(L::N).take(L::N).enumerate() {
                let from = rows[first + r].cast::<T>().wrapping_add(k);
                prefetch(from.wrapping_add(CHUNK));
                // SAFETY: `n` numbers are there.
                unsafe {
                    if n == L::N {
                        T::load::<L>(from).store(block.as_mut_ptr());
                    } else {
                        for (i, wide) in block[..n].iter_mut().enumerate() {
                            *wide = from.add(i).read_unaligned().wide();
                        }
                    }
                }
            }
            let to = wide.wrapping_add((k - columns.start) * ROWS + first);
            if n == L::N {
                // SAFETY: the block is whole and has room; vectors of 16 are AVX-512's, those of 8 AVX2's.
                unsafe {
                    match L::N {
                        16 => transpose::turn_16(block.as_ptr(), to),
                        _ => transpose::turn_8(block.as_ptr(), to),
                    }
                }
            } else {
                for (i, r) in (0..n).flat_map(|i| (0..L::N).map(move |r| (i, r))) {
                    // SAFETY: column i of the rest, of which there is room for.
                    unsafe { to.add(i * ROWS + r).write(block[r * L::N + i]) };
                }
            }
        }
    }
}

/// [`Add`].
///
/// # Safety
/// The CPU has the instructions of `L`; the pointers point at as many columns and sums.
#[inline(always)]
unsafe fn add<L: Lanes>(groups: &[Group], x: *const f32, n_columns: usize, n_vectors: usize) {
    // SAFETY: as the caller says. The sums of so many vectors fit in the registers.
    unsafe {
        match (L::N, groups) {
            (16, &[a, b]) => by_vectors::<L, 2, 1>([a, b], x, n_columns, n_vectors),
            (16, groups) => {
                for &group in groups {
                    by_vectors::<L, 1, 1>([group], x, n_columns, n_vectors);
                }
            }
            (_, groups) => {
                for &group in groups {
                    by_vectors::<L, 1, 2>([group], x, n_columns, n_vectors);
                }
            }
        }
    }
}

/// # Safety
/// As [`add`].
#[inline(always)]
unsafe fn by_vectors<L: Lanes, const R: usize, const V: usize>(
    groups: [Group; R],
    x: *const f32,
    n_columns: usize,
    n_vectors: usize,
) {
    const { assert!(LEAST_256 == 4 && MOST_256 == 6 && LEAST_512 == 6 && MOST_512 == 12) };
    // SAFETY: as the caller says.
    unsafe {
        match (L::N, n_vectors) {
            (..16, 4) => multiply::<L, R, V, 4>(groups, x, n_columns),
            (..16, 5) => multiply::<L, R, V, 5>(groups, x, n_columns),
            (_, 6) => multiply::<L, R, V, 6>(groups, x, n_columns),
            (16.., 7) => multiply::<L, R, V, 7>(groups, x, n_columns),
            (16.., 8) => multiply::<L, R, V, 8>(groups, x, n_columns),
            (16.., 9) => multiply::<L, R, V, 9>(groups, x, n_columns),
            (16.., 10) => multiply::<L, R, V, 10>(groups, x, n_columns),
            (16.., 11) => multiply::<L, R, V, 11>(groups, x, n_columns),
            (16.., 12) => multiply::<L, R, V, 12>(groups, x, n_columns),
            _ => unreachable!("a block of {n_vectors} vectors"),
        }
    }
}

/// `R` groups, each of `V` vectors of rows, times `M` vectors.
///
/// # Safety
/// As [`add`].
#[inline(always)]
unsafe fn multiply<L: Lanes, const R: usize, const V: usize, const M: usize>(
    groups: [Group; R],
    x: *const f32,
    n_columns: usize,
) {
    // SAFETY: as the caller says.
    unsafe {
        let mut sums = [[[L::splat(0.0); V]; R]; M];
        for (m, sums) in sums.iter_mut().enumerate() {
            for (sums, group) in sums.iter_mut().zip(groups) {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = L::load(group.sums.add(ROWS * m + L::N * v));
                }
            }
        }
        for k in 0..n_columns {
            let mut weights = [[L::splat(0.0); V]; R];
            for (weights, group) in weights.iter_mut().zip(groups) {
                for (v, weights) in weights.iter_mut().enumerate() {
                    *weights = L::load(group.wide.cast::<f32>().add(ROWS * k + L::N * v));
                }
            }
            for (m, sums) in sums.iter_mut().enumerate() {
                let number = L::splat(x.add(M * k + m).read());
                for (sum, weights) in sums
                    .as_flattened_mut()
                    .iter_mut()
                    .zip(weights.as_flattened())
                {
                    *sum = weights.fma(number, *sum);
                }
            }
        }
        for (m, sums) in sums.into_iter().enumerate() {
            for (sums, group) in sums.into_iter().zip(groups) {
                for (v, sum) in sums.into_iter().enumerate() {
                    sum.store(group.sums.add(ROWS * m + L::N * v));
                }
            }
        }
    }
}
