//! Products of panels with many vectors, for 64-bit ARM: what a prompt runs.
//!
//! The numbers of a cell are widened to signed bytes or 16-bit words, from which the offset of the format is gone, its scales
//! and minima to floats. Then it is multiplied with blocks of up to six vectors ([`super::block`]): by `smmla`
//! ([`super::smmla`]), `sdot` ([`super::sdot`]), or where there is neither by `smlal` ([`super::smlal`]).
//!
//! Numbers and sums are those of the products with a few vectors ([`super`]), and so are the results, to the bit.

#[cfg(test)]
mod tests;

use std::arch::aarch64::*;
use std::ops::Range;

use super::block::{self, BlockDot};
use super::cell::{Cell, Halves, HalvesWithMin, LANES, Layout, Plain, WithMin};
use super::gemv::FOURS;
use super::int16_cell::{CELL_BYTES, Int16Cell, WORDS};
use super::kind::{ForCells, for_cells};
use super::multiply::{Sdot, Smull};
use super::quantise::quantise_cell;
use super::smmla::Smmla;
use crate::isa::{Isa, Level};
use crate::matmul::activation::Values;
use crate::matmul::blocked_gemm::pack::{lay_words, pack_cells};
use crate::matmul::blocked_gemm::{Blocks, Group, MicroKernel};
use crate::matmul::vectors::Vectors;
use crate::panels::format::{CELL, SUPER, Table};
use crate::panels::matrix::PackedMatrix;

/// Cells of a chunk.
const CHUNK: usize = SUPER;

/// Bytes that x takes.
pub fn packed_bytes(m: usize, cols: usize) -> usize {
    m * cols.div_ceil(CELL) * CELL_BYTES
}

/// Lays blocks of x out: how x is cut, x, the blocks, and where they go.
pub type Pack = unsafe fn(Blocks, &Vectors, Range<usize>, *mut u8);

/// What lays x out for a level.
pub fn packing(level: Level) -> Pack {
    match level.isa() {
        Isa::Neon => pack_x::<Smull>,
        Isa::I8mm => pack_x::<Smmla>,
        _ => pack_x::<Sdot>,
    }
}

/// Quantises blocks `range` of x and lays them out at `packed`.
///
/// # Safety
/// - `reach`: `packed` has room for [`packed_bytes`].
/// - `own`: nobody else touches these blocks.
unsafe fn pack_x<W: BlockDot>(blocks: Blocks, x: &Vectors, range: Range<usize>, packed: *mut u8) {
    let sizes = (x.len() / CELL, CELL_BYTES / 4);
    // SAFETY: passes on `reach` and `own`.
    unsafe { pack_cells(sizes, blocks, x, (range, packed), quantise::<W>) }
}

/// Quantises a cell of one of the vectors of a block, which is in the order of [`Int16Block`](super::int16_cell::Int16Block).
#[inline(always)]
fn quantise<W: BlockDot>(x: &[f32; CELL], (vector, n_vectors): (usize, usize), block: &mut [u32]) {
    let mut values = Values([0; 2 * CELL]);
    // SAFETY: every 64-bit ARM CPU has NEON.
    let (scale, sums) = unsafe { quantise_cell(x, &mut values) };
    let (words, others) = block.split_at_mut(WORDS * n_vectors);
    W::lay(&W::words(&values), (vector, n_vectors), words);
    let sum = sums[0].wrapping_add(sums[1]);
    let start = sum.wrapping_mul(128).cast_unsigned();
    let [all, low, high] = [sum, sums[0], sums[1]].map(|sum| (scale * sum as f32).to_bits());
    let rest = [start, scale.to_bits(), all, low, high];
    lay_words(&rest, (vector, n_vectors), others);
}

/// The weights, for a level of instructions.
pub struct Int16Gemm<'a> {
    /// The weights.
    pub matrix: &'a PackedMatrix,
    /// The level.
    pub level: Level,
}

impl Int16Gemm<'_> {
    fn cells(&self, chunk: usize) -> Range<usize> {
        let first = chunk * CHUNK;
        first..self.matrix.shape.cells.min(first + CHUNK)
    }

    /// # Safety
    /// That of [`MicroKernel::widen`].
    unsafe fn widen_for<W: BlockDot>(&self, at: usize, chunk: usize, wide: *mut u8) {
        let quant = self.matrix.shape.quant;
        // Those of 8 bits are less by 128 already.
        let offset = if quant.has_bytes() { 0 } else { quant.offset };
        let widening = Widening::<W> {
            panel: self.matrix.panel(at).as_ptr(),
            cells: self.cells(chunk),
            offset: offset as i8,
            wide: wide.cast(),
        };
        // SAFETY: `reach`: the panel has the cells, and there is room for them.
        unsafe { for_cells(quant, widening) }
    }

    /// # Safety
    /// That of [`MicroKernel::add`].
    unsafe fn add_for<W: BlockDot>(
        &self,
        group: Group,
        x: *const u8,
        n_vectors: usize,
        cells: usize,
    ) {
        let quant = self.matrix.shape.quant;
        // 128 is gone from numbers of 8 bits: right where it is the format's offset, which otherwise is 0.
        let less_128 = quant.bits == 8 && quant.offset == 0;
        let scales = quant.scales;
        let add = match (scales.has_halves(), scales.has_min(), less_128) {
            (false, false, _) => block::add::<W, Plain, false>,
            (false, true, false) => block::add::<W, WithMin, false>,
            (false, true, true) => block::add::<W, WithMin, true>,
            (true, false, _) => block::add::<W, Halves, false>,
            (true, true, _) => block::add::<W, HalvesWithMin, false>,
        };
        // SAFETY: passes on `level` and `reach`.
        unsafe { add(group, x, n_vectors, cells) }
    }
}

impl MicroKernel for Int16Gemm<'_> {
    /// Words are the largest numbers.
    const WIDE: usize = CHUNK * size_of::<Int16Cell<<Smull as BlockDot>::Numbers>>();

    fn chunks(&self) -> usize {
        self.matrix.shape.cells.div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.matrix.shape.cells * CELL_BYTES
    }

    fn at_once(&self) -> usize {
        1
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        // SAFETY: passes on `level` and `reach`.
        unsafe {
            match self.level.isa() {
                Isa::Neon => self.widen_for::<Smull>(at, chunk, wide),
                Isa::I8mm => self.widen_for::<Smmla>(at, chunk, wide),
                _ => self.widen_for::<Sdot>(at, chunk, wide),
            }
        }
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let cells = self.cells(chunk);
        let x = x.wrapping_add(cells.start * n_vectors * CELL_BYTES);
        for &group in groups {
            // SAFETY: passes on `level` and `reach`.
            unsafe {
                match self.level.isa() {
                    Isa::Neon => self.add_for::<Smull>(group, x, n_vectors, cells.len()),
                    Isa::I8mm => self.add_for::<Smmla>(group, x, n_vectors, cells.len()),
                    _ => self.add_for::<Sdot>(group, x, n_vectors, cells.len()),
                }
            }
        }
    }
}

/// Cells on their way to the numbers of a way to multiply.
struct Widening<W: BlockDot> {
    panel: *const u8,
    cells: Range<usize>,
    offset: i8,
    wide: *mut Int16Cell<W::Numbers>,
}

impl<W: BlockDot> ForCells for Widening<W> {
    type Out = ();

    #[target_feature(enable = "neon")]
    unsafe fn run<S: Layout, const BITS: u32>(self, table: Table) {
        let offset = vdupq_n_s8(self.offset);
        for (i, c) in self.cells.enumerate() {
            let cell = Cell::<S, BITS>::at(self.panel, c, table);
            // SAFETY: `reach`: the panel has the cell, and there is room for it.
            unsafe {
                let wide = self.wide.add(i);
                for four in 0..FOURS {
                    let numbers = cell.numbers(four).map(|numbers| vsubq_s8(numbers, offset));
                    W::put(numbers, four, &raw mut (*wide).numbers);
                    let of_cell = cell.scales(four);
                    for half in 0..2 {
                        let (scales, mins) =
                            (&raw mut (*wide).scales[half], &raw mut (*wide).mins[half]);
                        vst1q_f32(scales.cast::<f32>().add(LANES * four), of_cell.scales[half]);
                        vst1q_f32(mins.cast::<f32>().add(LANES * four), of_cell.mins[half]);
                    }
                }
            }
        }
    }
}
