//! Quantised weights times many vectors, as 16-bit integers.
//!
//! A cell of a panel is widened to pairs of words, sixteen rows times two columns a vector, and multiplied by
//! `vpdpwssd` (AVX-512, AVX-VNNI) or `vpmaddwd` (AVX2), which sum pairs of products as 32-bit integers: twice and one and a half
//! times as many a cycle as f32. Once for each cell the integer sums become floats and are scaled. The offset of the
//! format is gone from the words, and a scale for half of the columns, an integer, is multiplied into them.
//!
//! Numbers and sums are those of the products with a few vectors ([`crate::matmul::gemv`]), and so are the results, to the bit.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::int16_cell::{Int16Block, Int16Cell, Minima, PAIRS, scales_of};
use super::kind::AHEAD;
use super::{avx2, avx512, vnni};
use crate::isa::{Isa, Level};
use crate::matmul::activation::Values;
use crate::matmul::blocked_gemm::pack::{lay_words, pack_cells};
use crate::matmul::blocked_gemm::{Blocks, GROUPS, Group, MicroKernel};
use crate::matmul::vectors::Vectors;
use crate::panels::format::{CELL, SUPER};
use crate::panels::matrix::{PackedMatrix, PackedShape};

/// Cells of a chunk.
pub const CHUNK: usize = SUPER;

/// Bytes of a piece that is fetched while the one before it is multiplied.
const SMALL_PIECE: usize = 64 << 10;

/// Bytes of a cell of x for each vector.
pub const CELL_BYTES: usize = size_of::<Int16Block<1>>();

/// Bytes that x takes.
pub fn packed_bytes(m: usize, cols: usize) -> usize {
    m * cols.div_ceil(CELL) * CELL_BYTES
}

/// Quantises blocks `range` of x and lays them out at `packed`.
///
/// # Safety
/// - `level`: AVX2.
/// - `reach`: `packed` has room for [`packed_bytes`].
/// - `own`: nobody else touches these blocks.
#[target_feature(enable = "avx2")]
pub unsafe fn pack_x(blocks: Blocks, x: &Vectors, range: Range<usize>, packed: *mut u8) {
    // SAFETY: passes on `level`, `reach` and `own`.
    unsafe {
        let sizes = (x.len() / CELL, CELL_BYTES / 4);
        pack_cells(sizes, blocks, x, (range, packed), |x, at, block| {
            let mut words = [0; CELL_BYTES / 4];
            quantise(x, &mut words);
            lay_words(&words, at, block);
        });
    }
}

/// A cell of one vector, in the order of [`Int16Block`].
#[inline]
#[target_feature(enable = "avx2")]
fn quantise(x: &[f32; CELL], out: &mut [u32; CELL_BYTES / 4]) {
    let mut values = Values([0; 2 * CELL]);
    let (scale, sums) = avx2::quantise::quantise_cell(x, &mut values);
    let (pairs, floats) = out.split_at_mut(PAIRS);
    for (out, pair) in pairs.iter_mut().zip(values.0.as_chunks::<4>().0) {
        *out = u32::from_le_bytes(pair.map(i8::cast_unsigned));
    }
    for (out, float) in floats.iter_mut().zip(scales_of(scale, sums)) {
        *out = float.to_bits();
    }
}

/// The weights as pairs, for a level of instructions.
pub struct Int16Gemm<'a> {
    /// The weights.
    pub matrix: &'a PackedMatrix,
    /// The level.
    pub level: Level,
}

impl Int16Gemm<'_> {
    fn minima(&self) -> Minima {
        let scales = self.matrix.shape.quant.scales;
        match (scales.has_min(), scales.has_halves()) {
            (false, _) => Minima::None,
            (true, false) => Minima::One,
            (true, true) => Minima::OfHalves,
        }
    }

    fn cells(&self, chunk: usize) -> Range<usize> {
        cells(chunk, self.matrix.shape.cells)
    }

    /// Bytes from a cell to the one that is fetched with it. A piece of [`GROUPS`] is widened chunk by chunk; where it is small, the same
    /// cells of the next piece are fetched, so that each cell is fetched once and in time.
    fn ahead(&self) -> usize {
        let PackedShape { quant, cells, .. } = self.matrix.shape;
        match GROUPS * quant.panel_bytes(cells) {
            piece @ ..=SMALL_PIECE => piece,
            _ => AHEAD,
        }
    }
}

/// The cells of a chunk, of `n` in a row.
pub fn cells(chunk: usize, n: usize) -> Range<usize> {
    let first = chunk * CHUNK;
    first..n.min(first + CHUNK)
}

/// Groups that a level multiplies at once.
pub fn at_once(level: Level) -> usize {
    match level.isa() {
        Isa::Avx2 | Isa::AvxVnni => 1,
        _ => 2,
    }
}

/// Adds the products of cells of groups, at most [`at_once`], with a block of vectors, which begins at `x`.
///
/// # Safety
/// `reach`: the groups have as many cells and sums, `x` as many cells.
pub unsafe fn add(
    (level, minima): (Level, Minima),
    groups: &[Group],
    x: *const u8,
    cells: Range<usize>,
    n_vectors: usize,
) {
    let x = x.wrapping_add(cells.start * n_vectors * CELL_BYTES);
    let n_cells = cells.len();
    // SAFETY: `level` is the proof; passes on `reach`.
    unsafe {
        match level.isa() {
            Isa::Avx2 => groups
                .iter()
                .for_each(|group| avx2::int16_gemm::add(minima, *group, x, n_vectors, n_cells)),
            Isa::AvxVnni => groups
                .iter()
                .for_each(|group| vnni::int16_gemm::add(minima, *group, x, n_vectors, n_cells)),
            _ => avx512::int16_gemm::add(minima, groups, x, n_vectors, n_cells),
        }
    }
}

impl MicroKernel for Int16Gemm<'_> {
    const WIDE: usize = CHUNK * size_of::<Int16Cell>();

    fn chunks(&self) -> usize {
        self.matrix.shape.cells.div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.matrix.shape.cells * CELL_BYTES
    }

    fn at_once(&self) -> usize {
        at_once(self.level)
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        let (panel, quant) = (self.matrix.panel(at), self.matrix.shape.quant);
        let (cells, wide) = (self.cells(chunk), wide.cast::<Int16Cell>());
        // SAFETY: `level`: `self.level` is the proof; passes on `reach`.
        unsafe {
            match self.level.isa() {
                Isa::Avx2 | Isa::AvxVnni => {
                    avx2::int16_gemm::widen(quant, panel.as_ptr(), cells, wide)
                }
                _ => avx512::int16_gemm::widen(quant, (panel.as_ptr(), self.ahead()), cells, wide),
            }
        }
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let cells = self.cells(chunk);
        // SAFETY: passes on `level` and `reach`.
        unsafe { add((self.level, self.minima()), groups, x, cells, n_vectors) }
    }
}
