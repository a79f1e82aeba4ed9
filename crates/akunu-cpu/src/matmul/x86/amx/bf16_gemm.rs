//! Products of panels with many vectors by tile instructions: what a prompt runs with quantised weights.
//!
//! x is rounded to bf16 and cut into tiles of 16 vectors and 32 columns once, by all threads. Then each thread takes
//! *slabs*, some pairs of panels at a time:
//!
//! ```text
//! for each run of cells
//!     turn the run of all panels of the slab into bf16 tiles             (they stay in the second cache)
//!     for each 32 vectors
//!         for each pair of panels
//!             32 × 32 sums += tiles of x (first cache) · tiles of the pair
//! ```
//!
//! so that x, which all threads read from the shared cache, is read once for a whole slab. With 32 vectors or fewer x is
//! small and the weights are used once: then a slab is one pair, whose sums stay in the registers from run to run.

use std::arch::x86_64::*;
use std::ops::Range;

use super::expand::expand;
use crate::amx::{TILE, Tiles};
use crate::matmul::shape::Shape;
use crate::matmul::vectors::Vectors;
use crate::panels::format::{CELL, ROWS};
use crate::panels::matrix::PackedMatrix;

/// Cells that are expanded at once. The tiles of x that a block of sums multiplies with them, 32 KiB, fit the first
/// cache.
const RUN: usize = 16;
/// The same where tiles are used once, for few vectors: what was just written is still in the first cache.
const SHORT_RUN: usize = 8;
/// Pairs of panels of a slab, at most: 128 KiB of tiles.
const SLAB: usize = 4;
/// Bytes of the tiles of a pair of panels.
const PAIR_TILES: usize = 2 * RUN * TILE;
/// Outputs of a pair of panels.
pub const PAIR: usize = 2 * ROWS;

/// Rows of tiles of `m` vectors.
pub fn tile_rows(m: usize) -> usize {
    m.div_ceil(16)
}

/// Bytes that the tiles of x take.
pub fn packed_bytes(m: usize, cells: usize) -> usize {
    tile_rows(m) * cells * TILE
}

/// Bytes that the tiles of a slab take, and a block of sums.
pub const SCRATCH: usize = SLAB * PAIR_TILES + PAIR * PAIR * 4;

/// Pairs of panels that share a reading of x.
pub fn pairs_at_once(m: usize) -> usize {
    if tile_rows(m) <= 2 { 1 } else { SLAB }
}

/// Cuts rows of tiles `range` of x into tiles at `packed`.
///
/// # Safety
/// - `level`: AVX-512 F, BW, VL and BF16.
/// - `reach`: `packed` has room for [`packed_bytes`].
/// - `own`: nobody else touches the tiles of these rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn pack_x(x: &Vectors, range: Range<usize>, packed: *mut u8) {
    let cells = x.len() / CELL;
    for row in range {
        for within in 0..16 {
            let vector = 16 * row + within;
            let source = (vector < x.count()).then(|| x.get(vector));
            for cell in 0..cells {
                let numbers = source.map_or([_mm512_setzero_ps(); 2], |source| {
                    let source = &source[cell * CELL..][..CELL];
                    // SAFETY: `reach`: a cell of floats.
                    [0, 16].map(|at| unsafe { _mm512_loadu_ps(source.as_ptr().add(at)) })
                });
                // SAFETY: `reach`: 64 bytes of plain numbers.
                let line: __m512i =
                    unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(numbers[1], numbers[0])) };
                // SAFETY: `reach`: tile `cell` of this row, line `within`.
                unsafe {
                    let to = packed.add((row * cells + cell) * TILE + 64 * within);
                    _mm512_storeu_si512(to.cast(), line);
                }
            }
        }
    }
}

/// Computes the outputs of pairs of panels `range`.
///
/// # Safety
/// - `level`: AMX.
/// - `reach`: `packed` holds all of x in tiles, `scratch` points at [`SCRATCH`] bytes, `y` at the whole output.
/// - `own`: nobody else touches the scratch memory, nor these columns of y.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn multiply(
    matrix: &PackedMatrix,
    shape: &Shape,
    packed: *const u8,
    (y, scratch): (*mut f32, *mut u8),
    range: Range<usize>,
) {
    // SAFETY: passes on `level`.
    let mut tiles = unsafe { Tiles::configure() };
    let mut block = Block {
        matrix,
        shape,
        packed,
        scratch,
        cells: (0, 0),
        y,
    };
    let few = tile_rows(shape.m) <= 2;
    let (cells, run) = (matrix.shape.cells, if few { SHORT_RUN } else { RUN });
    let runs = (0..cells).step_by(run);
    let runs = runs.map(|from| (from, (from + run).min(cells)));
    for first in range.clone().step_by(SLAB) {
        let slab = first..range.end.min(first + SLAB);
        // SAFETY: passes on `level`, `reach` and `own`.
        unsafe {
            if few {
                for pair in slab {
                    block.multiply_through(&mut tiles, pair, runs.clone());
                }
                continue;
            }
            for cells in runs.clone() {
                block.cells = cells;
                block.multiply_run(&mut tiles, slab.clone());
            }
        }
    }
}

/// Asks for `lines` cache lines from `at` on.
#[inline]
fn fetch(at: *const u8, lines: usize) {
    for line in 0..lines {
        // SAFETY: `reach`: a prefetch may name any address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(64 * line).cast()) };
    }
}

/// What all blocks of sums of a run of cells have in common.
struct Block<'a> {
    matrix: &'a PackedMatrix,
    shape: &'a Shape,
    packed: *const u8,
    scratch: *mut u8,
    cells: (usize, usize),
    y: *mut f32,
}

impl Block<'_> {
    /// Adds a run of cells of all pairs of a slab to all sums.
    ///
    /// # Safety
    /// That of [`multiply`], for all functions here.
    unsafe fn multiply_run(&self, tiles: &mut Tiles, slab: Range<usize>) {
        let (from, to) = self.cells;
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            for (at, pair) in slab.clone().enumerate() {
                self.expand_pair(pair, at);
            }
            for row in (0..tile_rows(self.shape.m)).step_by(2) {
                for (at, pair) in slab.clone().enumerate() {
                    // The next rows of x, a part with each pair.
                    let next = self.x(row + 2 + at % 2);
                    let lines = (to - from) * TILE / 64;
                    match slab.len() {
                        0..=2 => fetch(next, lines),
                        _ => fetch(next.wrapping_add(at / 2 * lines / 2 * 64), lines / 2),
                    }
                    self.multiply(tiles, (pair, at), row);
                }
            }
        }
    }

    /// All sums of one pair and at most 32 vectors.
    ///
    /// # Safety
    /// That of [`multiply`].
    unsafe fn multiply_through(
        &mut self,
        tiles: &mut Tiles,
        pair: usize,
        runs: impl Iterator<Item = (usize, usize)>,
    ) {
        let both = tile_rows(self.shape.m) > 1;
        tiles.zero();
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            for cells in runs {
                self.cells = cells;
                self.expand_pair(pair, 0);
                self.sum(tiles, 0, 0, both);
            }
            let sums = self.scratch.add(SLAB * PAIR_TILES).cast::<f32>();
            tiles.store(sums, 4 * PAIR, both);
            self.combine(sums, self.shape.beta, (0, PAIR * pair));
        }
    }

    /// The tiles of row `row` of x in this run.
    fn x(&self, row: usize) -> *const u8 {
        let at = (row * self.matrix.shape.cells + self.cells.0) * TILE;
        self.packed.wrapping_add(at)
    }

    /// Where the tiles of panel `which` (0 or 1) of pair `at` of the slab begin.
    fn tile_place(&self, at: usize, which: usize) -> *mut u8 {
        self.scratch
            .wrapping_add(at * PAIR_TILES + which * RUN * TILE)
    }

    /// Turns this run of a pair into tiles.
    ///
    /// # Safety
    /// That of [`multiply`].
    unsafe fn expand_pair(&self, pair: usize, at: usize) {
        for which in 0..2 {
            // A missing second panel is a copy of the first, whose outputs are not stored.
            let panel = (2 * pair + which).min(self.matrix.shape.count() - 1);
            let panel = self.matrix.panel(panel);
            let to = self.tile_place(at, which);
            // SAFETY: `reach`: the scratch memory has room for RUN tiles at each place.
            unsafe { expand(self.matrix.shape.quant, panel, self.cells, to) };
        }
    }

    /// Adds this run to the sums of tile rows `row` and `row + 1` with pair `at` of the slab.
    ///
    /// # Safety
    /// That of [`multiply`].
    unsafe fn multiply(&self, tiles: &mut Tiles, (pair, at): (usize, usize), row: usize) {
        let shape = self.shape;
        let both = row + 1 < tile_rows(shape.m);
        let (rows, first) = (if both { 32 } else { 16 }, self.cells.0 == 0);
        let beta = if first { shape.beta } else { 1.0 };
        let inside = 16 * row + rows <= shape.m && PAIR * (pair + 1) <= shape.n;
        let plain = shape.alpha == 1.0 && (beta == 0.0 || beta == 1.0);
        let y = self.y.wrapping_add(16 * row * shape.ldc + PAIR * pair);
        // SAFETY: inside, the block of y is whole; else the sums go through the scratch memory.
        unsafe {
            if inside && plain {
                match beta {
                    0.0 => tiles.zero(),
                    _ => tiles.load(y, 4 * shape.ldc, both),
                }
                self.sum(tiles, at, row, both);
                tiles.store(y, 4 * shape.ldc, both);
            } else {
                let sums = self.scratch.add(SLAB * PAIR_TILES).cast::<f32>();
                tiles.zero();
                self.sum(tiles, at, row, both);
                tiles.store(sums, 4 * PAIR, both);
                self.combine(sums, beta, (16 * row, PAIR * pair));
            }
        }
    }

    /// Adds the products of all tiles of the run with pair `at` of the slab.
    ///
    /// # Safety
    /// That of [`multiply`].
    unsafe fn sum(&self, tiles: &mut Tiles, at: usize, row: usize, both: bool) {
        let n = self.cells.1 - self.cells.0;
        let w = [0, 1].map(|which| self.tile_place(at, which).cast_const());
        // SAFETY: `reach`: `n` tiles are at each place.
        unsafe {
            if both {
                tiles.multiply_two([self.x(row), self.x(row + 1)], w, n);
            } else {
                tiles.multiply_one(self.x(row), w, n);
            }
        }
    }

    /// `y = alpha sums + beta y` for those sums that y has.
    ///
    /// # Safety
    /// That of [`multiply`], and `reach`: `sums` is a block.
    unsafe fn combine(&self, sums: *const f32, beta: f32, (row, col): (usize, usize)) {
        let shape = self.shape;
        for r in 0..PAIR.min(shape.m - row) {
            for c in 0..PAIR.min(shape.n - col) {
                // SAFETY: `reach`: within the block and within y.
                unsafe {
                    let to = self.y.wrapping_add((row + r) * shape.ldc + col + c);
                    let sum = shape.alpha * sums.add(r * PAIR + c).read();
                    to.write(if beta == 0.0 {
                        sum
                    } else {
                        sum + beta * to.read()
                    });
                }
            }
        }
    }
}
