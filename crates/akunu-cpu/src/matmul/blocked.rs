//! Products with many vectors on machines without tile instructions: what a prompt runs.
//!
//! Weights are widened to numbers that are multiplied fast, a piece of [`PANELS`] groups of sixteen rows and a chunk of
//! their columns at a time, which stays in the core's cache. x is laid out once, by all threads, in blocks of
//! [`BLOCK`] vectors, so that it is read from front to back:
//!
//! ```text
//! for each piece of groups of rows
//!     for each chunk of columns
//!         widen the chunk of the groups
//!         for each block of vectors
//!             for each pair of groups: sums += widened * block, with the sums in registers
//!     y = alpha sums + beta y
//! ```
//!
//! A sum has its products added in the order of the columns, however many vectors there are and however the groups are
//! shared among threads.

use std::ops::Range;

use super::format::ROWS;
use super::gemm::Shape;

/// Vectors that share a reading of the weights: their sums with a pair of groups stay in registers.
pub const BLOCK: usize = 6;
/// Groups of sixteen rows that share a reading of x.
pub const PANELS: usize = 4;
/// Blocks of vectors whose sums are kept at a time.
const BLOCKS: usize = 80;

/// How many blocks of vectors there are.
pub fn blocks(m: usize) -> usize {
    m.div_ceil(BLOCK)
}

/// The vectors of block `block` of `m`: at most [`BLOCK`], and about as many as all others have.
pub fn vectors(m: usize, block: usize) -> Range<usize> {
    let first = |block: usize| m * block / blocks(m);
    first(block)..first(block + 1)
}

/// A way to multiply.
///
/// # Safety
/// All functions: the CPU has the instructions, and the pointers point at as much as the parameters say.
pub trait Form {
    /// Bytes of a widened chunk of a group.
    const WIDE: usize;
    /// How many chunks of columns there are.
    fn chunks(&self) -> usize;
    /// Bytes of x for each vector.
    fn x_bytes(&self) -> usize;
    /// Widens a chunk of group `at` to `wide`.
    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8);
    /// Adds the products of a chunk of one or two groups with a block of vectors, which begins at `x`, to their sums,
    /// sixteen for each vector.
    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize);
}

/// A widened chunk of sixteen rows, and their sums with a block of vectors.
#[derive(Clone, Copy)]
pub struct Group {
    /// The chunk.
    pub wide: *const u8,
    /// Sixteen sums for each vector.
    pub sums: *mut f32,
}

/// A product on its way.
pub struct Job<'a, F> {
    /// How it is multiplied, and with what.
    pub form: F,
    /// Sizes and factors.
    pub shape: &'a Shape,
    /// x, laid out for the form.
    pub packed: *const u8,
    /// Memory of this thread: [`scratch_bytes`].
    pub scratch: *mut u8,
    /// The whole output.
    pub y: *mut f32,
}

/// Bytes of a thread's memory for `m` vectors.
pub fn scratch_bytes<F: Form>(m: usize) -> usize {
    PANELS * (F::WIDE + sums_len(m) * size_of::<f32>())
}

/// Sums of a group that are kept at a time.
fn sums_len(m: usize) -> usize {
    BLOCKS.min(blocks(m)) * BLOCK * ROWS
}

impl<F: Form> Job<'_, F> {
    /// Computes the outputs of groups `range` of rows.
    ///
    /// # Safety
    /// The CPU has the instructions of the form; the pointers are what the fields say; nobody else touches these
    /// columns of y.
    #[inline(always)]
    pub unsafe fn run(&self, range: Range<usize>) {
        let n_blocks = blocks(self.shape.m);
        for first in range.clone().step_by(PANELS) {
            let piece = first..range.end.min(first + PANELS);
            for first in (0..n_blocks).step_by(BLOCKS) {
                let blocks = first..n_blocks.min(first + BLOCKS);
                // SAFETY: as the caller says.
                unsafe {
                    self.sum(piece.clone(), blocks.clone());
                    self.store(piece.clone(), blocks);
                }
            }
        }
    }

    /// Where the widened chunk of the `p`-th group of a piece is.
    fn wide(&self, p: usize) -> *mut u8 {
        self.scratch.wrapping_add(p * F::WIDE)
    }

    /// Where its sums with the `block`-th of the blocks at hand are.
    fn sums(&self, p: usize, block: usize) -> *mut f32 {
        let sums = self.scratch.wrapping_add(PANELS * F::WIDE).cast::<f32>();
        sums.wrapping_add(p * sums_len(self.shape.m) + block * BLOCK * ROWS)
    }

    /// # Safety
    /// As [`Job::run`].
    #[inline(always)]
    unsafe fn sum(&self, piece: Range<usize>, blocks: Range<usize>) {
        // SAFETY: as the caller says.
        unsafe {
            for p in 0..piece.len() {
                self.sums(p, 0).write_bytes(0, blocks.len() * BLOCK * ROWS);
            }
            for chunk in 0..self.form.chunks() {
                for (p, at) in piece.clone().enumerate() {
                    self.form.widen(at, chunk, self.wide(p));
                }
                for (place, block) in blocks.clone().enumerate() {
                    let vectors = vectors(self.shape.m, block);
                    let x = self.packed.add(vectors.start * self.form.x_bytes());
                    let group = |p: usize| Group {
                        wide: self.wide(p),
                        sums: self.sums(p, place),
                    };
                    for p in (0..piece.len()).step_by(2) {
                        let pair = [group(p), group(p + 1)];
                        let groups = &pair[..2.min(piece.len() - p)];
                        self.form.add(groups, x, chunk, vectors.len());
                    }
                }
            }
        }
    }

    /// `y = alpha sums + beta y`.
    ///
    /// # Safety
    /// As [`Job::run`].
    #[inline(always)]
    unsafe fn store(&self, piece: Range<usize>, blocks: Range<usize>) {
        let Shape {
            n,
            ldc,
            alpha,
            beta,
            ..
        } = *self.shape;
        for (place, block) in blocks.enumerate() {
            for (i, vector) in vectors(self.shape.m, block).enumerate() {
                for (p, at) in piece.clone().enumerate() {
                    let rows = ROWS.min(n - ROWS * at);
                    // SAFETY: as the caller says.
                    let (y, sums) = unsafe {
                        let y = self.y.add(vector * ldc + ROWS * at);
                        let sums = self.sums(p, place).add(ROWS * i);
                        (
                            std::slice::from_raw_parts_mut(y, rows),
                            std::slice::from_raw_parts(sums, rows),
                        )
                    };
                    for (y, sum) in y.iter_mut().zip(sums) {
                        *y = match beta {
                            0.0 => alpha * sum,
                            beta => alpha * sum + beta * *y,
                        };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each vector is in one block, none of which is empty or too large for the loops.
    #[test]
    fn blocks_share_the_vectors_out() {
        for m in 1..200 {
            let mut next = 0;
            for block in 0..blocks(m) {
                let vectors = vectors(m, block);
                assert_eq!(vectors.start, next);
                assert!((1..=BLOCK).contains(&vectors.len()));
                next = vectors.end;
            }
            assert_eq!(next, m);
        }
    }
}
