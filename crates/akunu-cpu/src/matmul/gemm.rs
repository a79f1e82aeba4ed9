//! Products of panels with many vectors by tile instructions: what a prompt runs.
//!
//! x is rounded to bf16 and cut into tiles of 16 vectors and 32 columns once, by all threads. Then each
//! thread takes pairs of panels: it turns a run of their cells into bf16 tiles, which stay in its cache, and
//! multiplies them with all of x in blocks of 32 × 32 sums.
//!
//! Where bf16 is too coarse, because weights are floating-point numbers, both sides are split in two,
//! `x = x₁ + x₂` and `w = w₁ + w₂`, and `x₁ w₁ + x₂ w₁ + x₁ w₂` is summed.

use std::arch::x86_64::*;
use std::ops::Range;

use super::amx::{TILE, Tiles};
use super::expand::{expand, has_rest, split_bf16};
use super::format::{CELL, Format, ROWS};
use super::matrix::Matrix;

/// Cells that are expanded at once: 64 KiB of tiles for each of a pair of panels.
const RUN: usize = 64;
/// Outputs of a pair of panels.
const PAIR: usize = 2 * ROWS;

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

/// Whether x needs a second tile for what bf16 leaves over.
pub fn splits(format: Format) -> bool {
    matches!(format, Format::Float(_))
}

/// Bytes that the tiles of x take.
pub fn packed_bytes(format: Format, m: usize, cells: usize) -> usize {
    m.div_ceil(16) * cells * TILE * if splits(format) { 2 } else { 1 }
}

/// Bytes that the tiles of a pair of panels take, and a block of sums.
pub const SCRATCH: usize = 4 * RUN * TILE + PAIR * PAIR * 4;

/// Cuts rows of tiles `range` of x into tiles at `packed`.
///
/// # Safety
/// The processor must have AVX-512 F, BW, VL and BF16. `packed` has room for [`packed_bytes`], and nobody
/// else touches the tiles of these rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub unsafe fn pack_x(
    matrix: &Matrix,
    shape: &Shape,
    x: &[f32],
    range: Range<usize>,
    packed: *mut u8,
) {
    let (cols, cells) = (matrix.plan.cols, matrix.plan.cells);
    let rest = shape.tile_rows() * cells * TILE;
    for row in range {
        for within in 0..16 {
            let vector = 16 * row + within;
            let source = x.get(vector * shape.lda..).filter(|_| vector < shape.m);
            for cell in 0..cells {
                // SAFETY: tile `cell` of this row, line `within`.
                let line = unsafe { packed.add((row * cells + cell) * TILE + 64 * within) };
                let numbers = source.map_or([_mm512_setzero_ps(); 2], |source| {
                    let columns = (cols - cell * CELL).min(CELL);
                    load(&source[cell * CELL..][..columns])
                });
                let [first, second] = split_bf16(numbers);
                // SAFETY: as above; the second tile lies as far behind as all first ones take.
                unsafe {
                    _mm512_storeu_si512(line.cast(), first);
                    if splits(matrix.plan.format) {
                        _mm512_storeu_si512(line.add(rest).cast(), second);
                    }
                }
            }
        }
    }
}

/// Up to 32 numbers, zeros after them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(numbers: &[f32]) -> [__m512; 2] {
    let mask = u32::MAX.checked_shr(32 - numbers.len() as u32).unwrap_or(0);
    // SAFETY: only as many numbers as there are are read.
    unsafe {
        [
            _mm512_maskz_loadu_ps(mask as u16, numbers.as_ptr()),
            _mm512_maskz_loadu_ps((mask >> 16) as u16, numbers.as_ptr().wrapping_add(16)),
        ]
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

/// Where the tiles of panel `which` (0 or 1) of a pair begin, and those of what bf16 leaves over.
fn tile_places(scratch: *mut u8, which: usize) -> [*mut u8; 2] {
    [0, 2].map(|rest| scratch.wrapping_add((which + rest) * RUN * TILE))
}

/// # Safety
/// As [`multiply`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn expand_pair(matrix: &Matrix, pair: usize, cells: (usize, usize), scratch: *mut u8) {
    for which in 0..2 {
        let at = 2 * pair + which;
        // A missing second panel is a copy of the first, whose outputs are not stored.
        let panel = matrix.panel(at.min(matrix.plan.count() - 1));
        let [high, low] = tile_places(scratch, which);
        // SAFETY: the scratch memory has room for RUN tiles at each place.
        unsafe { expand(matrix.plan.format, panel, cells, high, low) };
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
                let sums = self.scratch.add(4 * RUN * TILE).cast::<f32>();
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
        let rest = self.shape.tile_rows() * cells * TILE;
        let x = |row: usize, part: usize| {
            self.packed
                .wrapping_add((row * cells + from) * TILE + part * rest)
        };
        let w =
            |part: usize| [0, 1].map(|which| tile_places(self.scratch, which)[part].cast_const());
        let format = self.matrix.plan.format;
        let parts = [(0, 0), (1, 0), (0, 1)];
        let n_parts = 1 + usize::from(splits(format)) + usize::from(has_rest(format));
        for (of_x, of_w) in &parts[..n_parts] {
            // SAFETY: `to - from` tiles are at each place.
            unsafe {
                if both {
                    let x = [x(row, *of_x), x(row + 1, *of_x)];
                    tiles.multiply_two(x, w(*of_w), to - from);
                } else {
                    tiles.multiply_one(x(row, *of_x), w(*of_w), to - from);
                }
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
