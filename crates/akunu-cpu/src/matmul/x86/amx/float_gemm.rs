//! Products of floating-point rows with many vectors by tile instructions: what a prompt runs with such weights.
//!
//! Both sides are split in two parts ([`Split`]), and `w₁ x₁ + w₁ x₂ + w₂ x₁` is summed.
//! Here rows of weights are the rows of the left factor, as they lie in the file, and vectors are the columns of the
//! right one; so the sums come out turned and are turned back when they are stored. x is cut into tiles once, by all
//! threads; then each thread takes pairs of groups of 16 rows.

use std::arch::x86_64::*;
use std::ops::Range;

use half::{bf16, f16};

use crate::amx::{Split, TILE, Tiles, masks};
use crate::matmul::float_gemv::{Float, Rows};
use crate::matmul::shape::Shape;
use crate::matmul::vectors::Vectors;
use crate::panels::format::{CELL, ROWS};
use crate::simd::transpose::transpose;

/// Rows, and vectors, of a block of sums.
const BLOCK: usize = 2 * ROWS;
/// Cells that are made tiles at once, where tiles are used for many blocks.
const RUN: usize = 32;
/// Blocks of rows whose tiles are multiplied with the same tiles of x: 512 KiB, a part of the second cache.
const SLAB: usize = 4;
/// The same where they are used for one block: small enough for the first cache.
const SHORT_RUN: usize = 8;
/// Bytes of both parts of a cell.
const PARTS: usize = 2 * TILE;

/// Bytes that the tiles of x take.
pub fn packed_bytes(m: usize, cols: usize) -> usize {
    m.div_ceil(16) * cols.div_ceil(CELL) * PARTS
}

/// Bytes that the tiles of a slab take, and the sums.
pub const SCRATCH: usize = 2 * SLAB * RUN * PARTS + BLOCK * BLOCK * 4;

/// Cuts groups of 16 vectors `range` of x into tiles at `packed`: line p of a tile has pair p of each vector.
///
/// # Safety
/// - `level`: AVX-512 F, BW, VL and BF16.
/// - `reach`: `packed` has room for [`packed_bytes`].
/// - `own`: nobody else touches the tiles of these vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn pack_x(x: &Vectors, range: Range<usize>, packed: *mut u8) {
    let cols = x.len();
    let cells = cols.div_ceil(CELL);
    for group in range {
        for cell in 0..cells {
            let mut parts = [[_mm512_setzero_ps(); 16]; 2];
            for n in 0..16.min(x.count() - 16 * group) {
                let vector = x.get(16 * group + n);
                let columns = &vector[cell * CELL..cols.min((cell + 1) * CELL)];
                // SAFETY: `reach`: as many columns are there.
                let both = unsafe { f32::line(columns.as_ptr(), masks(columns.len())) };
                for (part, pairs) in parts.iter_mut().zip(both) {
                    part[n] = _mm512_castsi512_ps(pairs);
                }
            }
            for (part, vectors) in parts.into_iter().enumerate() {
                let tile = packed.wrapping_add((group * cells + cell) * PARTS + part * TILE);
                for (p, pairs) in transpose(vectors).into_iter().enumerate() {
                    // SAFETY: `reach`: line p of a tile of this group.
                    unsafe { _mm512_storeu_ps(tile.add(64 * p).cast(), pairs) };
                }
            }
        }
    }
}

/// Computes the outputs of blocks of 32 rows `range`.
///
/// # Safety
/// - `level`: AMX.
/// - `reach`: `packed` holds all of x in tiles, `scratch` points at [`SCRATCH`] bytes, `y` at the whole output.
/// - `own`: nobody else touches the scratch memory, nor these columns of y.
pub unsafe fn multiply(
    rows: &Rows,
    shape: &Shape,
    packed: *const u8,
    (y, scratch): (*mut f32, *mut u8),
    range: Range<usize>,
) {
    let job = Job {
        rows,
        shape,
        packed,
        scratch,
        y,
    };
    // SAFETY: passes on `level`, `reach` and `own`.
    unsafe {
        match rows.float {
            Float::F16 => job.run::<f16>(range),
            Float::BF16 => job.run::<bf16>(range),
            Float::F32 => job.run::<f32>(range),
        }
    }
}

/// A product on its way.
struct Job<'a> {
    rows: &'a Rows<'a>,
    shape: &'a Shape,
    packed: *const u8,
    scratch: *mut u8,
    y: *mut f32,
}

impl Job<'_> {
    /// # Safety
    /// That of [`multiply`], for all functions here. `reach`: the rows hold numbers of type `T`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn run<T: Split>(&self, range: Range<usize>) {
        // SAFETY: passes on `level`.
        let mut tiles = unsafe { Tiles::configure() };
        let cells = self.rows.cols.div_ceil(CELL);
        let blocks = self.shape.m.div_ceil(BLOCK);
        // The sums of a single block stay in the registers from run to run.
        let stay = blocks == 1;
        let (run, slab) = if stay { (SHORT_RUN, 1) } else { (RUN, SLAB) };
        for first in range.clone().step_by(slab) {
            let slab = first..range.end.min(first + slab);
            for from in (0..cells).step_by(run) {
                let to = (from + run).min(cells);
                // SAFETY: passes on `level`, `reach` and `own`.
                unsafe {
                    for group in 2 * slab.start..2 * slab.end {
                        self.expand::<T>(group, (from, to), self.place(group - 2 * slab.start));
                    }
                    for (block, at) in (0..blocks).flat_map(|b| slab.clone().map(move |at| (b, at)))
                    {
                        if !stay || from == 0 {
                            tiles.zero();
                        }
                        self.sum::<T>(&mut tiles, (at - slab.start, block), (from, to));
                        if !stay || to == cells {
                            let first = stay || from == 0;
                            let beta = if first { self.shape.beta } else { 1.0 };
                            self.store(&mut tiles, (at, block), beta);
                        }
                    }
                }
            }
        }
    }

    /// Where the tiles of group `which` of a slab begin.
    fn place(&self, which: usize) -> *mut u8 {
        self.scratch.wrapping_add(which * RUN * PARTS)
    }

    /// Makes tiles of cells `from..to` of the 16 rows of a group.
    ///
    /// # Safety
    /// `reach`: `out` has room for both parts of as many cells.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn expand<T: Split>(&self, group: usize, (from, to): (usize, usize), out: *mut u8) {
        let rows = self.rows;
        let starts: [*const u8; ROWS] = std::array::from_fn(|r| rows.row(ROWS * group + r));
        let ahead = BLOCK * rows.stride();
        let bytes = if T::REST { PARTS } else { TILE };
        for cell in from..to {
            let masks = masks(rows.cols - cell * CELL);
            for (r, row) in starts.iter().enumerate() {
                // SAFETY: numbers of the row; line r of a tile; a prefetch may name any address.
                unsafe {
                    let at = row.cast::<T>().add(cell * CELL);
                    _mm_prefetch::<_MM_HINT_T1>(at.wrapping_byte_add(ahead).cast());
                    let [first, rest] = T::line(at, masks);
                    let tile = out.add((cell - from) * bytes + 64 * r);
                    _mm512_storeu_si512(tile.cast(), first);
                    if T::REST {
                        _mm512_storeu_si512(tile.add(TILE).cast(), rest);
                    }
                }
            }
        }
    }

    /// Adds the products of cells `from..to` of block `at` of the slab with a block of 32 vectors.
    ///
    /// # Safety
    /// `reach`: the tiles of the block of rows are made.
    unsafe fn sum<T: Split>(
        &self,
        tiles: &mut Tiles,
        (at, block): (usize, usize),
        (from, to): (usize, usize),
    ) {
        let cells = self.rows.cols.div_ceil(CELL);
        let last = self.shape.m.div_ceil(16) - 1;
        // A missing second group is a copy of the first, whose sums are not stored.
        let x = [0, 1].map(|which| {
            let group = (2 * block + which).min(last);
            self.packed.wrapping_add((group * cells + from) * PARTS)
        });
        let w = [0, 1].map(|which| self.place(2 * at + which).cast_const());
        // SAFETY: `reach`: as many tiles are at each place.
        unsafe {
            if T::REST {
                tiles.multiply_sums(w, x, to - from);
            } else {
                tiles.multiply_by_sums(w, x, to - from);
            }
        }
    }

    /// `y = alpha sums + beta y` for those sums of a block that y has.
    ///
    /// # Safety
    /// `own`: nobody else touches these outputs.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn store(&self, tiles: &mut Tiles, (at, block): (usize, usize), beta: f32) {
        let shape = self.shape;
        let sums = self.place(2 * SLAB).cast::<f32>();
        // SAFETY: `reach`: the scratch memory has room for a block.
        unsafe { tiles.store(sums, 4 * BLOCK, true) };
        for (half, quarter) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (row, vector) = (BLOCK * at + ROWS * half, BLOCK * block + 16 * quarter);
            let missing = ROWS - ROWS.min(shape.n.saturating_sub(row));
            let mask = u16::MAX.unbounded_shr(missing as u32);
            let from = sums.wrapping_add(ROWS * half * BLOCK + 16 * quarter);
            // SAFETY: `reach`: sixteen lines of the block.
            let lines = std::array::from_fn(|r| unsafe { _mm512_loadu_ps(from.add(r * BLOCK)) });
            let turned = transpose(lines).into_iter();
            for (v, sums) in turned.take(shape.m.saturating_sub(vector)).enumerate() {
                let to = self.y.wrapping_add((vector + v) * shape.ldc + row);
                let mut out = _mm512_mul_ps(sums, _mm512_set1_ps(shape.alpha));
                // SAFETY: only outputs that y has are touched.
                unsafe {
                    if beta != 0.0 {
                        let had = _mm512_maskz_loadu_ps(mask, to);
                        out = _mm512_fmadd_ps(had, _mm512_set1_ps(beta), out);
                    }
                    _mm512_mask_storeu_ps(to, mask, out);
                }
            }
        }
    }
}
