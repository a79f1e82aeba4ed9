//! Floating-point weights of 16 bits times many vectors, as 16-bit integers: `vpdpwssd` multiplies twice as many a cycle
//! as an instruction on f32.
//!
//! The numbers of a row in a cell of 32 columns become
//!
//! ```text
//! w = scale * u,   scale = max |w| / 4096,   u = round(w / scale)
//! ```
//!
//! in the same layout as cells of panels, and are multiplied by the same loops ([`super::pairs`]). With the activations of 14
//! bits no sum of a cell overflows: `32 * 4096 * (2¹⁴ - 1) < 2³¹`. Of normally distributed weights the rounding loses 2e-8
//! of the power, about as much as their own 11 bits have lost before.

use std::ops::Range;

use super::blocked::{Form, Group};
use super::pairs::{self, CELL_BYTES, CHUNK};
use super::rows::{Float, Rows};
use super::wide::{Minima, Wide};
use super::{columns, pairs256, pairs512};
use crate::isa::Isa;
use crate::panels::format::{CELL, ROWS};
use crate::simd::{self, Lanes, WithLanes};

#[cfg(test)]
mod tests;

/// The largest of the words.
const LARGEST: f32 = 4096.0;

/// Whether rows of these numbers are multiplied in this way: whole cells of at most 16 bits each.
pub fn fits(float: Float, cols: usize) -> bool {
    float != Float::F32 && cols.is_multiple_of(CELL)
}

/// The weights as pairs, for a level of instructions.
pub struct HalfPairs<'a> {
    /// The weights, which [fit](fits).
    pub rows: &'a Rows<'a>,
    /// The level.
    pub isa: Isa,
}

impl HalfPairs<'_> {
    /// The cells of a chunk.
    fn cells(&self, chunk: usize) -> Range<usize> {
        pairs::cells(chunk, self.rows.cols / CELL)
    }
}

impl Form for HalfPairs<'_> {
    const WIDE: usize = CHUNK * size_of::<Wide>();

    fn chunks(&self) -> usize {
        (self.rows.cols / CELL).div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.rows.cols / CELL * CELL_BYTES
    }

    fn at_once(&self) -> usize {
        pairs::at_once(self.isa)
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        let widening = Widening {
            rows: self.rows,
            at,
            cells: self.cells(chunk),
            wide: wide.cast(),
        };
        // SAFETY: the CPU has the instructions, and there is room for the cells.
        unsafe {
            match self.isa {
                Isa::Avx2 | Isa::AvxVnni => simd::avx2::run(widening),
                _ => simd::avx512::run(widening),
            }
        }
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let cells = self.cells(chunk);
        // SAFETY: as the caller says.
        unsafe { pairs::add((self.isa, Minima::None), groups, x, cells, n_vectors) }
    }
}

/// Cells of a group of rows on their way to words: turned into columns of f32, and rounded.
struct Widening<'a> {
    rows: &'a Rows<'a>,
    at: usize,
    cells: Range<usize>,
    wide: *mut Wide,
}

impl WithLanes for Widening<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let mut columns = [[0f32; ROWS]; CELL];
        for (c, cell) in self.cells.enumerate() {
            let of = cell * CELL..(cell + 1) * CELL;
            // SAFETY: the CPU has the instructions, and vectors of 16 are AVX-512's; there is room for the columns and the
            // cells.
            unsafe {
                columns::widen::<L>(self.rows, self.at, of, columns.as_mut_ptr().cast());
                match L::N {
                    16 => pairs512::round(&columns, LARGEST, self.wide.add(c)),
                    _ => pairs256::round(&columns, LARGEST, self.wide.add(c)),
                }
            }
        }
    }
}
