//! Products with many vectors on machines without tile instructions: what a prompt runs.
//!
//! Weights are widened to numbers that are multiplied fast, a piece of [`GROUPS`] groups of sixteen rows and a chunk of
//! their columns at a time, which stays in the core's cache. x is laid out once, by all threads, in [`Blocks`] of
//! vectors, so that it is read from front to back:
//!
//! ```text
//! for each piece of groups of rows
//!     for each chunk of columns
//!         widen the chunk of the groups                    (they stay in the second cache)
//!         for each run of blocks                           (it stays there too)
//!             for each one or two groups                   (they stay in the first cache)
//!                 for each block of vectors of the run
//!                     sums += widened * block, with the sums in registers
//!     y = alpha sums + beta y
//! ```
//!
//! A sum has its products added in the order of the columns, however many vectors there are and however the groups are
//! shared among threads.

pub mod pack;
#[cfg(test)]
pub mod testing;

use std::ops::Range;

use super::shape::Shape;
use crate::isa::Isa;
use crate::panels::format::ROWS;
use crate::part::Scratch;

/// Groups of sixteen rows that share a reading of x.
pub const GROUPS: usize = 4;
/// Maximum number of vectors whose sums are kept at a time; a step reads up to 512 of a prompt, which are fewer.
const KEPT: usize = 528;
/// About how many vectors a run of blocks has. A chunk of them takes 64 KiB or less.
const RUN: usize = 96;

/// Vectors in blocks that share a reading of the weights. The sums of a block stay in registers: of six vectors in the
/// 16 registers of AVX2, of twelve in the 32 of AVX-512, of six in the 32 of ARM, which are as short as four floats. There must be
/// more vectors than [`FEW`](super::batch::FEW), so that a block has at least as many as the level's `LEAST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    m: usize,
    most: usize,
}

/// The smallest and the largest block of AVX2.
#[cfg(any(test, target_arch = "x86_64"))]
pub const LEAST_AVX2: usize = 4;
/// See [`LEAST_AVX2`].
pub const MOST_AVX2: usize = 6;
/// The smallest and the largest block of AVX-512.
#[cfg(any(test, target_arch = "x86_64"))]
pub const LEAST_AVX512: usize = 6;
/// See [`LEAST_AVX512`].
pub const MOST_AVX512: usize = 12;
/// The smallest and the largest block of ARM.
#[cfg(any(test, target_arch = "aarch64"))]
pub const LEAST_NEON: usize = 4;
/// See [`LEAST_NEON`].
pub const MOST_NEON: usize = 6;

impl Blocks {
    /// The blocks of `m` vectors.
    pub fn of(m: usize, isa: Isa) -> Blocks {
        let most = match isa {
            Isa::Avx2 | Isa::AvxVnni => MOST_AVX2,
            Isa::Neon | Isa::Dotprod | Isa::I8mm => MOST_NEON,
            _ => MOST_AVX512,
        };
        Blocks { m, most }
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.m.div_ceil(self.most)
    }

    /// The vectors of a block: about as many as all others have.
    pub fn vectors(self, block: usize) -> Range<usize> {
        let first = |block: usize| self.m * block / self.count();
        first(block)..first(block + 1)
    }

    /// Blocks whose sums are kept at a time: about as many each time.
    fn kept(self) -> usize {
        let times = self.count().div_ceil(KEPT / self.most);
        self.count().div_ceil(times)
    }

    /// Sums of a group of rows that are kept at a time.
    fn sums(self) -> usize {
        self.kept() * self.most * ROWS
    }
}

/// What is multiplied, and the loop whose sums stay in registers. It holds the proof of its level.
///
/// # Safety
/// All functions, `reach`: the pointers point at as much as the parameters say.
pub trait MicroKernel {
    /// Bytes of a widened chunk of a group.
    const WIDE: usize;
    /// How many chunks of columns there are.
    fn chunks(&self) -> usize;
    /// Bytes of x for each vector.
    fn x_bytes(&self) -> usize;
    /// Groups that are multiplied at once: one or two.
    fn at_once(&self) -> usize;
    /// Widens a chunk of group `at` to `wide`.
    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8);
    /// Adds the products of a chunk of groups, at most [`at_once`](MicroKernel::at_once), with a block of vectors, which begins
    /// at `x`, to their sums, sixteen for each vector.
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
pub struct BlockedGemm<'a, F> {
    /// How it is multiplied, and with what.
    pub kernel: F,
    /// Sizes and factors.
    pub shape: &'a Shape,
    /// How x is cut.
    pub blocks: Blocks,
    /// x, laid out for the micro-kernel.
    pub packed: *const u8,
    /// Memory of this thread: [`scratch_bytes`].
    pub scratch: *mut u8,
    /// Where output 0 of vector 0 is.
    pub y: *mut f32,
}

/// Bytes of a thread's memory for these vectors.
pub fn scratch_bytes<F: MicroKernel>(blocks: Blocks) -> usize {
    GROUPS * (F::WIDE + blocks.sums() * size_of::<f32>())
}

/// Computes the outputs of groups `range` of rows.
///
/// # Safety
/// - `reach`: x is laid out for the micro-kernel; output 0 of vector 0 would be at `y`, and there is memory for those of the groups.
/// - `own`: nobody else touches these outputs.
pub unsafe fn multiply_blocked<F: MicroKernel>(
    scratch: &mut Scratch,
    kernel: F,
    shape: &Shape,
    (packed, blocks): (*const u8, Blocks),
    (y, range): (*mut f32, Range<usize>),
) {
    let bytes = scratch_bytes::<F>(blocks);
    let gemm = BlockedGemm {
        kernel,
        shape,
        blocks,
        packed,
        scratch: scratch.take::<u8>(bytes).as_mut_ptr(),
        y,
    };
    // SAFETY: passes on `reach` and `own`.
    unsafe { gemm.run(range) };
}

impl<F: MicroKernel> BlockedGemm<'_, F> {
    /// Computes the outputs of groups `range` of rows.
    ///
    /// # Safety
    /// - `reach`: the pointers are what the fields say.
    /// - `own`: nobody else touches these columns of y.
    #[inline(always)]
    pub unsafe fn run(&self, range: Range<usize>) {
        let (n_blocks, kept) = (self.blocks.count(), self.blocks.kept());
        // With so few vectors a widened chunk is read so few times that it had better stay in the first cache.
        let at_once = match n_blocks {
            ..=2 => self.kernel.at_once(),
            _ => GROUPS,
        };
        for first in range.clone().step_by(at_once) {
            let piece = first..range.end.min(first + at_once);
            for first in (0..n_blocks).step_by(kept) {
                let blocks = first..n_blocks.min(first + kept);
                // SAFETY: passes on `reach` and `own`.
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
        let sums = self.scratch.wrapping_add(GROUPS * F::WIDE).cast::<f32>();
        sums.wrapping_add(p * self.blocks.sums() + block * self.blocks.most * ROWS)
    }

    /// # Safety
    /// That of [`BlockedGemm::run`].
    #[inline(always)]
    unsafe fn sum(&self, piece: Range<usize>, blocks: Range<usize>) {
        // SAFETY: passes on `reach` and `own`.
        unsafe {
            for p in 0..piece.len() {
                let all = blocks.len() * self.blocks.most * ROWS;
                self.sums(p, 0).write_bytes(0, all);
            }
            for chunk in 0..self.kernel.chunks() {
                for (p, at) in piece.clone().enumerate() {
                    self.kernel.widen(at, chunk, self.wide(p));
                }
                for first in blocks.clone().step_by(RUN / self.blocks.most) {
                    let run = first..blocks.end.min(first + RUN / self.blocks.most);
                    self.multiply(chunk, piece.len(), (blocks.start, run));
                }
            }
        }
    }

    /// Adds the products of a widened chunk with a run of blocks; the sums of the blocks from `kept_from` on are kept.
    ///
    /// # Safety
    /// That of [`BlockedGemm::run`].
    #[inline(always)]
    unsafe fn multiply(
        &self,
        chunk: usize,
        n_groups: usize,
        (kept_from, run): (usize, Range<usize>),
    ) {
        let at_once = self.kernel.at_once();
        for p in (0..n_groups).step_by(at_once) {
            for block in run.clone() {
                let vectors = self.blocks.vectors(block);
                let group = |p: usize| Group {
                    wide: self.wide(p),
                    sums: self.sums(p, block - kept_from),
                };
                let pair = [group(p), group(p + 1)];
                let groups = &pair[..at_once.min(n_groups - p)];
                // SAFETY: passes on `reach` and `own`.
                unsafe {
                    let x = self.packed.add(vectors.start * self.kernel.x_bytes());
                    self.kernel.add(groups, x, chunk, vectors.len());
                }
            }
        }
    }

    /// `y = alpha sums + beta y`.
    ///
    /// # Safety
    /// That of [`BlockedGemm::run`].
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
            for (i, vector) in self.blocks.vectors(block).enumerate() {
                for (p, at) in piece.clone().enumerate() {
                    let rows = ROWS.min(n - ROWS * at);
                    // SAFETY: passes on `reach` and `own`.
                    let (y, sums) = unsafe {
                        let y = self.y.wrapping_add(vector * ldc + ROWS * at);
                        let sums = self.sums(p, place).add(ROWS * i);
                        (
                            std::slice::from_raw_parts_mut(y, rows),
                            std::slice::from_raw_parts(sums, rows),
                        )
                    };
                    put(y, sums, alpha, beta);
                }
            }
        }
    }
}

/// `y = alpha sums + beta y`. Whole groups, which are replaced or added to, are what there is most of.
#[inline(always)]
pub fn put(y: &mut [f32], sums: &[f32], alpha: f32, beta: f32) {
    match (
        <&mut [f32; ROWS]>::try_from(&mut *y),
        <&[f32; ROWS]>::try_from(sums),
    ) {
        (Ok(y), Ok(sums)) if (alpha, beta) == (1.0, 0.0) => *y = *sums,
        (Ok(y), Ok(sums)) if (alpha, beta) == (1.0, 1.0) => {
            *y = std::array::from_fn(|i| y[i] + sums[i]);
        }
        _ => {
            for (y, sum) in y.iter_mut().zip(sums) {
                *y = match beta {
                    0.0 => alpha * sum,
                    beta => alpha * sum + beta * *y,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::batch::FEW;

    /// Each vector is in one block, and there is a loop for as many as a block has.
    #[test]
    fn blocks_share_the_vectors_out() {
        for (isa, sizes) in [
            (Isa::Avx2, LEAST_AVX2..=MOST_AVX2),
            (Isa::Avx512, LEAST_AVX512..=MOST_AVX512),
            (Isa::Dotprod, LEAST_NEON..=MOST_NEON),
        ] {
            for m in FEW + 1..200 {
                let blocks = Blocks::of(m, isa);
                let mut next = 0;
                for block in 0..blocks.count() {
                    let vectors = blocks.vectors(block);
                    assert_eq!(vectors.start, next);
                    assert!(sizes.contains(&vectors.len()), "{m} vectors, {isa}");
                    next = vectors.end;
                }
                assert_eq!(next, m);
            }
        }
    }
}
