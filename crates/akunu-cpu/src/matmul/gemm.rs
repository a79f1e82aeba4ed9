//! Products of panels with many vectors by tile instructions: what a prompt runs with quantised weights.
//!
//! x is rounded to bf16 and cut into tiles of 16 vectors and 32 columns once, by all threads. Then each
//! thread takes pairs of panels: it turns a run of their cells into bf16 tiles, which stay in its cache, and
//! multiplies them with all of x in blocks of 32 × 32 sums.

use std::arch::x86_64::*;
use std::ops::Range;

use super::amx::{TILE, Tiles};
use super::expand::expand;
use super::format::{CELL, ROWS};
use super::matrix::Matrix;

/// Cells that are expanded at once: 64 KiB of tiles for each of a pair of panels.
const RUN: usize = 64;
/// Outputs of a pair of panels.
pub const PAIR: usize = 2 * ROWS;

/// `y = alpha x wᵀ + beta y`, all of it.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Vectors.
    pub m: usize,
    /// Outputs.
    pub n: usize,
    /// Floats between vectors of x.
    pub lda: usize,
    /// Floats between vectors of y.
    pub ldc: usize,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of what y held.
    pub beta: f32,
}

impl Shape {
    /// Rows of tiles of x.
    pub fn tile_rows(&self) -> usize {
        self.m.div_ceil(16)
    }
}

/// Bytes that the tiles of x take.
pub fn packed_bytes(m: usize, cells: usize) -> usize {
    m.div_ceil(16) * cells * TILE
}

/// Bytes that the tiles of a pair of panels take, and a block of sums.
pub const SCRATCH: usize = 2 * RUN * TILE + PAIR * PAIR * 4;

/// Cuts rows of tiles `range` of x into tiles at `packed`.
///
/// # Safety
/// The processor must have AVX-512 F, BW, VL and BF16. `packed` has room for [`packed_bytes`], and nobody
/// else touches the tiles of these rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn pack_x(cols: usize, shape: &Shape, x: &[f32], range: Range<usize>, packed: *mut u8) {
    let cells = cols / CELL;
    for row in range {
        for within in 0..16 {
            let vector = 16 * row + within;
            let source = x.get(vector * shape.lda..).filter(|_| vector < shape.m);
            for cell in 0..cells {
                let numbers = source.map_or([_mm512_setzero_ps(); 2], |source| {
                    let source = &source[cell * CELL..][..CELL];
                    // SAFETY: a cell of floats.
                    [0, 16].map(|at| unsafe { _mm512_loadu_ps(source.as_ptr().add(at)) })
                });
                // SAFETY: 64 bytes of plain numbers.
                let line: __m512i =
                    unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(numbers[1], numbers[0])) };
                // SAFETY: tile `cell` of this row, line `within`.
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
/// The processor must have AMX and AVX-512 F, BW, VL and BF16. `packed` holds all of x in tiles, `scratch`
/// points at [`SCRATCH`] bytes of this thread, `y` at the whole output, of which nobody else touches these
/// columns.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn multiply(
    matrix: &Matrix,
    shape: &Shape,
    packed: *const u8,
    (y, scratch): (*mut f32, *mut u8),
    range: Range<usize>,
) {
    // SAFETY: the processor has AMX.
    let mut tiles = unsafe { Tiles::configure() };
    for pair in range {
        for from in (0..matrix.plan.cells).step_by(RUN) {
            let to = (from + RUN).min(matrix.plan.cells);
            // SAFETY: as the caller says.
            unsafe {
                expand_pair(matrix, pair, (from, to), scratch);
                let block = Block {
                    matrix,
                    shape,
                    packed,
                    scratch,
                    cells: (from, to),
                };
                let mut row = 0;
                while row < shape.tile_rows() {
                    block.multiply(&mut tiles, pair, row, y);
                    row += 2;
                }
            }
        }
    }
}

/// Where the tiles of panel `which` (0 or 1) of a pair begin.
fn tile_place(scratch: *mut u8, which: usize) -> *mut u8 {
    scratch.wrapping_add(which * RUN * TILE)
}

/// # Safety
/// As [`multiply`].
unsafe fn expand_pair(matrix: &Matrix, pair: usize, cells: (usize, usize), scratch: *mut u8) {
    for which in 0..2 {
        let at = 2 * pair + which;
        // A missing second panel is a copy of the first, whose outputs are not stored.
        let panel = matrix.panel(at.min(matrix.plan.count() - 1));
        // SAFETY: the scratch memory has room for RUN tiles at each place.
        unsafe { expand(matrix.plan.quant, panel, cells, tile_place(scratch, which)) };
    }
}

/// What all blocks of sums of a run of cells have in common.
struct Block<'a> {
    matrix: &'a Matrix,
    shape: &'a Shape,
    packed: *const u8,
    scratch: *mut u8,
    cells: (usize, usize),
}

impl Block<'_> {
    /// Computes the sums of tile rows `row` and `row + 1` with a pair of panels.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn multiply(&self, tiles: &mut Tiles, pair: usize, row: usize, y: *mut f32) {
        let shape = self.shape;
        let both = row + 1 < shape.tile_rows();
        let (rows, first) = (if both { 32 } else { 16 }, self.cells.0 == 0);
        let beta = if first { shape.beta } else { 1.0 };
        let inside = 16 * row + rows <= shape.m && PAIR * (pair + 1) <= shape.n;
        let plain = shape.alpha == 1.0 && (beta == 0.0 || beta == 1.0);
        let at = y.wrapping_add(16 * row * shape.ldc + PAIR * pair);
        // SAFETY: inside, the block of y is whole; else the sums go through the scratch memory.
        unsafe {
            if inside && plain {
                match beta {
                    0.0 => tiles.zero(),
                    _ => tiles.load(at, 4 * shape.ldc, both),
                }
                self.sum(tiles, row, both);
                tiles.store(at, 4 * shape.ldc, both);
            } else {
                let sums = self.scratch.add(2 * RUN * TILE).cast::<f32>();
                tiles.zero();
                self.sum(tiles, row, both);
                tiles.store(sums, 4 * PAIR, both);
                self.combine(sums, beta, (16 * row, PAIR * pair), y);
            }
        }
    }

    /// Adds the products of all tiles of the run.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn sum(&self, tiles: &mut Tiles, row: usize, both: bool) {
        let (from, to) = self.cells;
        let cells = self.matrix.plan.cells;
        let x = |row: usize| self.packed.wrapping_add((row * cells + from) * TILE);
        let w = [0, 1].map(|which| tile_place(self.scratch, which).cast_const());
        // SAFETY: `to - from` tiles are at each place.
        unsafe {
            if both {
                tiles.multiply_two([x(row), x(row + 1)], w, to - from);
            } else {
                tiles.multiply_one(x(row), w, to - from);
            }
        }
    }

    /// `y = alpha sums + beta y` for those sums that y has.
    ///
    /// # Safety
    /// As [`multiply`]; `sums` is a block.
    unsafe fn combine(&self, sums: *const f32, beta: f32, (row, col): (usize, usize), y: *mut f32) {
        let shape = self.shape;
        for r in 0..PAIR.min(shape.m - row) {
            for c in 0..PAIR.min(shape.n - col) {
                // SAFETY: within the block and within y.
                unsafe {
                    let to = y.add((row + r) * shape.ldc + col + c);
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
