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

use crate::isa::{Isa, Level};
use crate::matmul::blocked_gemm::{
    Blocks, Group, LEAST_AVX2, LEAST_AVX512, MOST_AVX2, MOST_AVX512, MicroKernel,
};
use crate::matmul::float_gemv::{Float, Rows};
use crate::matmul::vectors::Vectors;
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
/// - `reach`: `packed` has room for [`packed_bytes`].
/// - `own`: nobody else touches these blocks.
pub unsafe fn pack_x(blocks: Blocks, x: &Vectors, range: Range<usize>, packed: *mut u8) {
    let cols = x.len();
    for block in range {
        let vectors = blocks.vectors(block);
        let n = vectors.len();
        // SAFETY: the block's part of the memory, which is aligned for floats.
        let out = unsafe {
            let first = packed.cast::<f32>().add(vectors.start * cols);
            std::slice::from_raw_parts_mut(first, cols * n)
        };
        for (i, vector) in vectors.enumerate() {
            let places = out[i..].iter_mut().step_by(n);
            places.zip(x.get(vector)).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Columns of a group of rows on their way to f32. Who makes it promises `reach`: there is room for sixteen numbers a column.
struct Widening<'a> {
    rows: &'a Rows<'a>,
    at: usize,
    columns: Range<usize>,
    wide: *mut f32,
}

/// One or two groups on their way to products with a block of vectors. Who makes it promises `reach`: the groups have as many
/// columns and sums, `x` as many columns.
struct Adding<'a> {
    groups: &'a [Group],
    x: *const f32,
    n_columns: usize,
    n_vectors: usize,
}

impl WithLanes for Widening<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        // SAFETY: `reach`: that of the fields.
        unsafe { widen::<L>(self.rows, self.at, self.columns, self.wide) }
    }
}

impl WithLanes for Adding<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        // SAFETY: `reach`: that of the fields.
        unsafe { add::<L>(self.groups, self.x, self.n_columns, self.n_vectors) }
    }
}

/// The weights as columns of f32, for a level of instructions.
pub struct F32Gemm<'a> {
    /// The weights.
    pub rows: &'a Rows<'a>,
    /// The level.
    pub level: Level,
}

impl F32Gemm<'_> {
    /// The columns of a chunk.
    fn columns(&self, chunk: usize) -> Range<usize> {
        let first = chunk * CHUNK;
        first..self.rows.cols.min(first + CHUNK)
    }
}

impl MicroKernel for F32Gemm<'_> {
    const WIDE: usize = CHUNK * ROWS * size_of::<f32>();

    fn chunks(&self) -> usize {
        self.rows.cols.div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.rows.cols * size_of::<f32>()
    }

    fn at_once(&self) -> usize {
        match self.level.isa() {
            Isa::AvxVnni | Isa::Avx2 => 1,
            _ => 2,
        }
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        let widening = Widening {
            rows: self.rows,
            at,
            columns: self.columns(chunk),
            wide: wide.cast(),
        };
        simd::run(self.level, widening);
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let columns = self.columns(chunk);
        let adding = Adding {
            groups,
            x: x.cast::<f32>().wrapping_add(columns.start * n_vectors),
            n_columns: columns.len(),
            n_vectors,
        };
        simd::run(self.level, adding);
    }
}

/// Widens columns of group `at` to sixteen f32 each.
///
/// # Safety
/// `reach`: `wide` has room for the columns.
#[inline(always)]
pub unsafe fn widen<L: Lanes>(rows: &Rows, at: usize, columns: Range<usize>, wide: *mut f32) {
    let float = rows.float;
    let rows = std::array::from_fn(|n| rows.row(ROWS * at + n));
    // SAFETY: passes on `reach`.
    unsafe {
        match float {
            Float::F16 => widen_numbers::<L, f16>(rows, columns, wide),
            Float::BF16 => widen_numbers::<L, bf16>(rows, columns, wide),
            Float::F32 => widen_numbers::<L, f32>(rows, columns, wide),
        }
    }
}

/// # Safety
/// `reach`: that of [`widen`].
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
                // SAFETY: `reach`: `n` numbers are there.
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
                // SAFETY: `reach`: the block is whole and has room; vectors of 16 are AVX-512's, those of 8 AVX2's.
                unsafe {
                    match L::N {
                        16 => transpose::turn_16(block.as_ptr(), to),
                        _ => transpose::turn_8(block.as_ptr(), to),
                    }
                }
            } else {
                for (i, r) in (0..n).flat_map(|i| (0..L::N).map(move |r| (i, r))) {
                    // SAFETY: `reach`: column i of the rest, of which there is room for.
                    unsafe { to.add(i * ROWS + r).write(block[r * L::N + i]) };
                }
            }
        }
    }
}

/// Adds the products of one or two groups with a block of vectors.
///
/// # Safety
/// `reach`: the groups have as many columns and sums, `x` as many columns.
#[inline(always)]
unsafe fn add<L: Lanes>(groups: &[Group], x: *const f32, n_columns: usize, n_vectors: usize) {
    // SAFETY: passes on `reach`. The sums of so many vectors fit in the registers.
    unsafe {
        if const { L::N == 16 } {
            match *groups {
                [a, b] => by_vectors::<L, 2, 1>([a, b], x, n_columns, n_vectors),
                _ => {
                    for &group in groups {
                        by_vectors::<L, 1, 1>([group], x, n_columns, n_vectors);
                    }
                }
            }
        } else {
            for &group in groups {
                by_vectors::<L, 1, 2>([group], x, n_columns, n_vectors);
            }
        }
    }
}

/// # Safety
/// `reach`: that of [`add`].
#[inline(always)]
unsafe fn by_vectors<L: Lanes, const R: usize, const V: usize>(
    groups: [Group; R],
    x: *const f32,
    n_columns: usize,
    n_vectors: usize,
) {
    const { assert!(LEAST_AVX2 == 4 && MOST_AVX2 == 6 && LEAST_AVX512 == 6 && MOST_AVX512 == 12) };
    // SAFETY: passes on `reach`.
    unsafe {
        if const { L::N == 16 } {
            match n_vectors {
                6 => multiply::<L, R, V, 6>(groups, x, n_columns),
                7 => multiply::<L, R, V, 7>(groups, x, n_columns),
                8 => multiply::<L, R, V, 8>(groups, x, n_columns),
                9 => multiply::<L, R, V, 9>(groups, x, n_columns),
                10 => multiply::<L, R, V, 10>(groups, x, n_columns),
                11 => multiply::<L, R, V, 11>(groups, x, n_columns),
                12 => multiply::<L, R, V, 12>(groups, x, n_columns),
                _ => unreachable!("a block of {n_vectors} vectors"),
            }
        } else {
            match n_vectors {
                4 => multiply::<L, R, V, 4>(groups, x, n_columns),
                5 => multiply::<L, R, V, 5>(groups, x, n_columns),
                6 => multiply::<L, R, V, 6>(groups, x, n_columns),
                _ => unreachable!("a block of {n_vectors} vectors"),
            }
        }
    }
}

/// `R` groups, each of `V` vectors of rows, times `M` vectors.
///
/// # Safety
/// `reach`: that of [`add`].
#[inline(always)]
unsafe fn multiply<L: Lanes, const R: usize, const V: usize, const M: usize>(
    groups: [Group; R],
    x: *const f32,
    n_columns: usize,
) {
    // SAFETY: passes on `reach`.
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
