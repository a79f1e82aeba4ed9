//! Floating-point weights of 16 bits times many vectors, as 16-bit integers: `vpdpwssd` multiplies twice as many a cycle
//! as an instruction on f32.
//!
//! The numbers of a row in a cell of 32 columns become
//!
//! ```text
//! w = scale * u,   scale = max |w| / 4096,   u = round(w / scale)
//! ```
//!
//! in the same layout as cells of panels, and are multiplied by the same loops ([`super::int16_gemm`]). With the activations of 14
//! bits no sum of a cell overflows: `32 * 4096 * (2¹⁴ - 1) < 2³¹`. Of normally distributed weights the rounding loses 2e-8
//! of the power, about as much as their own 11 bits have lost before.

use std::ops::Range;

use super::int16_cell::{Int16Cell, Minima};
use super::int16_gemm::{self, CELL_BYTES, CHUNK};
use super::{avx2, avx512, f32_gemm};
use crate::isa::Level;
use crate::matmul::blocked_gemm::{Group, MicroKernel};
use crate::matmul::float_gemv::{Float, Rows};
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
pub struct F16Gemm<'a> {
    /// The weights, which [fit](fits).
    pub rows: &'a Rows<'a>,
    /// The level.
    pub level: Level,
}

impl F16Gemm<'_> {
    /// The cells of a chunk.
    fn cells(&self, chunk: usize) -> Range<usize> {
        int16_gemm::cells(chunk, self.rows.cols / CELL)
    }
}

impl MicroKernel for F16Gemm<'_> {
    const WIDE: usize = CHUNK * size_of::<Int16Cell>();

    fn chunks(&self) -> usize {
        (self.rows.cols / CELL).div_ceil(CHUNK)
    }

    fn x_bytes(&self) -> usize {
        self.rows.cols / CELL * CELL_BYTES
    }

    fn at_once(&self) -> usize {
        int16_gemm::at_once(self.level)
    }

    unsafe fn widen(&self, at: usize, chunk: usize, wide: *mut u8) {
        let widening = Widening {
            rows: self.rows,
            at,
            cells: self.cells(chunk),
            wide: wide.cast(),
        };
        simd::run(self.level, widening);
    }

    unsafe fn add(&self, groups: &[Group], x: *const u8, chunk: usize, n_vectors: usize) {
        let cells = self.cells(chunk);
        // SAFETY: passes on `reach`.
        unsafe { int16_gemm::add((self.level, Minima::None), groups, x, cells, n_vectors) }
    }
}

/// Cells of a group of rows on their way to words: turned into columns of f32, and rounded. Who makes it promises `reach`: there
/// is room for the cells.
struct Widening<'a> {
    rows: &'a Rows<'a>,
    at: usize,
    cells: Range<usize>,
    wide: *mut Int16Cell,
}

impl WithLanes for Widening<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let mut columns = [[0f32; ROWS]; CELL];
        for (c, cell) in self.cells.enumerate() {
            let of = cell * CELL..(cell + 1) * CELL;
            // SAFETY: `level`: vectors of 16 are AVX-512's, those of 8 AVX2's; `reach`: there is room for the columns, and that of
            // the fields.
            unsafe {
                f32_gemm::widen::<L>(self.rows, self.at, of, columns.as_mut_ptr().cast());
                match L::N {
                    16 => avx512::int16_gemm::round(&columns, LARGEST, self.wide.add(c)),
                    _ => avx2::int16_gemm::round(&columns, LARGEST, self.wide.add(c)),
                }
            }
        }
    }
}
