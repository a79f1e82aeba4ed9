//! Floating-point weights, read row by row as the file has them: nothing is laid out, nothing is copied.
//!
//! Decoding multiplies a few rows with up to [`BATCH`] vectors at a time. Their sums stay in registers, and a row's
//! numbers are widened to f32 once for all vectors.

use std::ops::Range;

use akunu_kernels::weight;
use akunu_types::DType;
use half::{bf16, f16};

use super::batch::{BATCH, Dots};
use crate::number::Number;
use crate::panels::format::ROWS;
use crate::simd::{Lanes, prefetch};

/// The numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float {
    /// f16.
    F16,
    /// bf16.
    BF16,
    /// f32.
    F32,
}

impl Float {
    /// Those of a weight format; `None` for quantised ones.
    pub fn of(dtype: DType) -> Option<Float> {
        let all = [Float::F16, Float::BF16, Float::F32];
        all.into_iter().find(|float| float.dtype() == dtype)
    }

    const fn dtype(self) -> DType {
        match self {
            Float::F16 => DType::F16,
            Float::BF16 => DType::BF16,
            Float::F32 => DType::F32,
        }
    }

    /// Bytes of a number.
    pub const fn bytes(self) -> usize {
        match self {
            Float::F16 | Float::BF16 => 2,
            Float::F32 => 4,
        }
    }
}

/// A weight matrix of floating-point numbers.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Its numbers.
    pub float: Float,
    /// Numbers of a row.
    pub cols: usize,
    rows: usize,
    /// Bytes from one row to the next.
    stride: usize,
    bytes: &'a [u8],
}

impl<'a> Rows<'a> {
    /// The matrix at the beginning of `bytes`; `None` if it is quantised or empty, or if bytes are missing.
    pub fn of(weight: &weight::WeightLayout, bytes: &'a [u8]) -> Option<Rows<'a>> {
        let float = Float::of(weight.dtype)?;
        let whole = bytes.len() >= weight.bytes();
        (whole && weight.rows > 0 && weight.cols > 0).then_some(Rows {
            float,
            cols: weight.cols,
            rows: weight.rows,
            stride: weight.stride * float.bytes(),
            bytes,
        })
    }

    /// How many groups of [`ROWS`] rows there are.
    pub fn groups(&self) -> usize {
        self.rows.div_ceil(ROWS)
    }

    /// The first byte of a row; of the last one, where there are not as many.
    pub fn row(&self, n: usize) -> *const u8 {
        let first = n.min(self.rows - 1) * self.stride;
        self.bytes[first..][..self.cols * self.float.bytes()].as_ptr()
    }

    /// Bytes from one row to the next.
    #[cfg(target_arch = "x86_64")]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Products of rows `within` of group `at`, whole quarters of it, with one to [`BATCH`] vectors; those of other rows are zeros.
    #[inline(always)]
    pub fn dots<L: Lanes>(&self, (at, within): (usize, Range<usize>), x: &[&[f32]]) -> Dots {
        let at = (at, within);
        assert!((1..=BATCH).contains(&x.len()) && x.iter().all(|x| x.len() >= self.cols));
        match self.float {
            Float::F16 => self.group::<L, f16>(at, x),
            Float::BF16 => self.group::<L, bf16>(at, x),
            Float::F32 => self.group::<L, f32>(at, x),
        }
    }

    #[inline(always)]
    fn group<L: Lanes, T: Number>(&self, at: (usize, Range<usize>), x: &[&[f32]]) -> Dots {
        match *x {
            [a] => self.batch::<L, T, 1>(at, [a]),
            [a, b] => self.batch::<L, T, 2>(at, [a, b]),
            [a, b, c] => self.batch::<L, T, 3>(at, [a, b, c]),
            [a, b, c, d, ..] => self.batch::<L, T, 4>(at, [a, b, c, d]),
            [] => [[0.0; ROWS]; BATCH],
        }
    }

    #[inline(always)]
    fn batch<L: Lanes, T: Number, const M: usize>(
        &self,
        at: (usize, Range<usize>),
        x: [&[f32]; M],
    ) -> Dots {
        let mut dots = [[0.0; ROWS]; BATCH];
        let x = x.map(<[f32]>::as_ptr);
        if const { L::REGISTERS >= 32 } {
            self.blocks::<L, T, 4, M>(at, x, &mut dots);
        } else {
            self.blocks::<L, T, 2, M>(at, x, &mut dots);
        }
        dots
    }

    #[inline(always)]
    fn blocks<L: Lanes, T: Number, const R: usize, const M: usize>(
        &self,
        (at, within): (usize, Range<usize>),
        x: [*const f32; M],
        dots: &mut Dots,
    ) {
        for first in within.step_by(R) {
            let rows = std::array::from_fn(|r| self.row(ROWS * at + first + r).cast());
            // SAFETY: each row, and each vector, has `cols` numbers.
            let sums = unsafe { products::<L, T, R, M>(rows, x, self.cols) };
            for (dots, sums) in dots.iter_mut().zip(sums) {
                dots[first..first + R].copy_from_slice(&sums);
            }
        }
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes ahead of the present ones that are fetched, where there is a single row.
const AHEAD: usize = 4096;

/// How far ahead of rows that are read side by side their successors lie, the rows of the next products.
fn to_successors<T, const R: usize>(rows: [*const T; R]) -> usize {
    let apart = rows[R - 1].addr().saturating_sub(rows[0].addr());
    match apart / (R - 1).max(1) * R {
        0 => AHEAD,
        bytes => bytes,
    }
}

/// `R` rows times `M` vectors of `cols` numbers.
///
/// # Safety
/// `reach`: each of `rows`, and each of `x`, has `cols` numbers.
#[inline(always)]
unsafe fn products<L: Lanes, T: Number, const R: usize, const M: usize>(
    rows: [*const T; R],
    x: [*const f32; M],
    cols: usize,
) -> [[f32; R]; M] {
    // SAFETY: `reach`: columns up to `cols` are read.
    unsafe {
        let mut sums = [[L::splat(0.0); R]; M];
        let line = LINE / size_of::<T>();
        let ahead = to_successors(rows);
        let mut at = 0;
        while at + line <= cols {
            for row in rows {
                prefetch(row.wrapping_add(at).wrapping_byte_add(ahead));
            }
            for step in 0..line / L::N {
                add::<L, T, R, M>(&mut sums, rows, x, at + step * L::N);
            }
            at += line;
        }
        while at + L::N <= cols {
            add::<L, T, R, M>(&mut sums, rows, x, at);
            at += L::N;
        }
        if at < cols {
            add_rest::<L, T, R, M>(&mut sums, rows, x, at..cols);
        }
        across(sums)
    }
}

/// Adds the products of `L::N` columns from `at` on.
///
/// # Safety
/// `reach`: the rows and the vectors have `L::N` columns from `at` on.
#[inline(always)]
unsafe fn add<L: Lanes, T: Number, const R: usize, const M: usize>(
    sums: &mut [[L; R]; M],
    rows: [*const T; R],
    x: [*const f32; M],
    at: usize,
) {
    // SAFETY: passes on `reach`.
    unsafe {
        let x = x.map(|x| L::load(x.add(at)));
        for (r, row) in rows.into_iter().enumerate() {
            let weights: L = T::load(row.add(at));
            for m in 0..M {
                sums[m][r] = weights.fma(x[m], sums[m][r]);
            }
        }
    }
}

/// Adds the products of the last columns, fewer than `L::N`.
///
/// # Safety
/// `reach`: the rows and the vectors have these columns.
#[inline(always)]
unsafe fn add_rest<L: Lanes, T: Number, const R: usize, const M: usize>(
    sums: &mut [[L; R]; M],
    rows: [*const T; R],
    x: [*const f32; M],
    columns: Range<usize>,
) {
    let n = columns.len();
    for (r, row) in rows.into_iter().enumerate() {
        // SAFETY: `reach`: `n` columns are there, fewer than `L::N`.
        unsafe {
            let weights: L = T::load_part(row.add(columns.start), n);
            for m in 0..M {
                let x = L::load_part(x[m].add(columns.start), n);
                sums[m][r] = weights.fma(x, sums[m][r]);
            }
        }
    }
}

/// The sum of each vector, four vectors at a time.
#[inline(always)]
fn across<L: Lanes, const R: usize, const M: usize>(sums: [[L; R]; M]) -> [[f32; R]; M] {
    let mut out = [[0.0; R]; M];
    for first in (0..M * R).step_by(4) {
        let four = std::array::from_fn(|i| {
            let i = (first + i).min(M * R - 1);
            sums[i / R][i % R]
        });
        for (i, sum) in (first..M * R).zip(L::sums(four)) {
            out[i / R][i % R] = sum;
        }
    }
    out
}
