//! Products of panels with many vectors by plain multiplications and additions: what a prompt runs on machines
//! without tile instructions.
//!
//! A panel is widened to f32 once, which stays in the core's cache: sixteen numbers a column, one for each row. Then
//!
//! ```text
//! y[m][n] += x[m][k] * w[k][n]
//! ```
//!
//! for one column k after the other, where the sixteen n are lanes and the sums of [`BLOCK`] vectors stay in
//! registers. x is laid out once, by all threads, so that the numbers that a column wants lie side by side.

use std::ops::Range;

use super::format::{Quant, ROWS};
use super::gemm::Shape;
use super::matrix::Matrix;
use crate::simd::Lanes;

/// Vectors that share a reading of the weights.
const BLOCK: usize = 12;

/// Widens a panel: the format, the panel, its cells, and room for sixteen numbers a column.
pub type Widen = unsafe fn(Quant, *const u8, usize, *mut f32);

/// Bytes that x takes.
pub fn packed_bytes(m: usize, cols: usize) -> usize {
    m.div_ceil(BLOCK) * BLOCK * cols * size_of::<f32>()
}

/// How many blocks of vectors there are.
pub fn blocks(m: usize) -> usize {
    m.div_ceil(BLOCK)
}

/// Floats that a widened panel takes.
pub fn scratch_len(matrix: &Matrix) -> usize {
    matrix.plan.cols * ROWS
}

/// Lays blocks `range` of vectors out at `packed`: number `(block * cols + k) * BLOCK + i` is column k of vector i.
///
/// # Safety
/// `packed` has room for [`packed_bytes`], and nobody else touches these blocks.
pub unsafe fn pack_x(cols: usize, shape: &Shape, x: &[f32], range: Range<usize>, packed: *mut f32) {
    for block in range {
        // SAFETY: the block's part of the memory.
        let out = unsafe {
            std::slice::from_raw_parts_mut(packed.add(block * cols * BLOCK), cols * BLOCK)
        };
        for i in 0..BLOCK {
            let vector = block * BLOCK + i;
            let places = out[i..].iter_mut().step_by(BLOCK);
            match vector < shape.m {
                true => {
                    let numbers = &x[vector * shape.lda..][..cols];
                    places.zip(numbers).for_each(|(to, from)| *to = *from);
                }
                false => places.for_each(|to| *to = 0.0),
            }
        }
    }
}

/// A product on its way.
pub struct Job<'a> {
    /// The weight.
    pub matrix: &'a Matrix,
    /// Sizes and factors.
    pub shape: &'a Shape,
    /// How panels are widened.
    pub widen: Widen,
    /// x, laid out.
    pub packed: *const f32,
    /// Memory of this thread: [`scratch_len`] floats.
    pub scratch: *mut f32,
    /// The whole output.
    pub y: *mut f32,
}

impl Job<'_> {
    /// Computes the outputs of panels `range`.
    ///
    /// # Safety
    /// The CPU has the instructions of `L` and of `widen`; the pointers are what the fields say; nobody else touches
    /// these columns of y.
    #[inline(always)]
    pub unsafe fn run<L: Lanes>(&self, range: Range<usize>) {
        let plan = &self.matrix.plan;
        for at in range {
            let panel = self.matrix.panel(at).as_ptr();
            // SAFETY: as the caller says.
            unsafe {
                (self.widen)(plan.quant, panel, plan.cells, self.scratch);
                for block in 0..blocks(self.shape.m) {
                    let x = self.packed.add(block * plan.cols * BLOCK);
                    self.multiply::<L>(x, (block, at));
                }
            }
        }
    }

    /// # Safety
    /// As [`Job::run`].
    #[inline(always)]
    unsafe fn multiply<L: Lanes>(&self, x: *const f32, (block, at): (usize, usize)) {
        const HALF: usize = BLOCK / 2;
        let first = block * BLOCK;
        // SAFETY: as the caller says; the sums of so many vectors fit in the registers.
        unsafe {
            match L::N {
                16 => self.sum_and_store::<L, 1, BLOCK>(x, (first, at)),
                8 => {
                    self.sum_and_store::<L, 2, HALF>(x, (first, at));
                    self.sum_and_store::<L, 2, HALF>(x.add(HALF), (first + HALF, at));
                }
                _ => {
                    self.sum_and_store::<L, 4, HALF>(x, (first, at));
                    self.sum_and_store::<L, 4, HALF>(x.add(HALF), (first + HALF, at));
                }
            }
        }
    }

    /// `M` vectors from `first` on, with the sixteen rows of panel `at` in `V` vectors.
    ///
    /// # Safety
    /// As [`Job::run`].
    #[inline(always)]
    unsafe fn sum_and_store<L: Lanes, const V: usize, const M: usize>(
        &self,
        x: *const f32,
        (first, at): (usize, usize),
    ) {
        // SAFETY: as the caller says.
        unsafe {
            let mut sums = [[L::splat(0.0); V]; M];
            for k in 0..self.matrix.plan.cols {
                let mut weights = [L::splat(0.0); V];
                for (v, weights) in weights.iter_mut().enumerate() {
                    *weights = L::load(self.scratch.add(ROWS * k + L::N * v));
                }
                for (m, sums) in sums.iter_mut().enumerate() {
                    let number = L::splat(*x.add(BLOCK * k + m));
                    for (sum, weights) in sums.iter_mut().zip(weights) {
                        *sum = weights.fma(number, *sum);
                    }
                }
            }
            for (m, sums) in sums.into_iter().enumerate() {
                let mut dots = [0f32; ROWS];
                for (v, sum) in sums.into_iter().enumerate() {
                    sum.store(dots.as_mut_ptr().add(L::N * v));
                }
                self.store(&dots, (first + m, at));
            }
        }
    }

    /// `y = alpha dots + beta y` for one vector and those rows of panel `at` that there are.
    ///
    /// # Safety
    /// As [`Job::run`].
    #[inline(always)]
    unsafe fn store(&self, dots: &[f32; ROWS], (vector, at): (usize, usize)) {
        let Shape {
            m,
            n,
            ldc,
            alpha,
            beta,
            ..
        } = *self.shape;
        if vector >= m {
            return;
        }
        let rows = ROWS.min(n - ROWS * at);
        // SAFETY: as the caller says.
        let y =
            unsafe { std::slice::from_raw_parts_mut(self.y.add(vector * ldc + ROWS * at), rows) };
        for (y, dot) in y.iter_mut().zip(dots) {
            *y = match beta {
                0.0 => alpha * dot,
                beta => alpha * dot + beta * *y,
            };
        }
    }
}
