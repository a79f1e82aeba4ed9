//! Products with many vectors on 64-bit ARM: panels are multiplied as 16-bit integers, on every level.

pub(super) mod neon;

use akunu_kernels::kernel::matmul::product::Product;

use self::neon::int16_gemm::{self, Int16Gemm};
use super::batch::FEW;
use super::blocked_gemm::outputs::{Outputs, multiply_blocked};
use super::blocked_gemm::{Blocks, GROUPS};
use super::float_gemv::Float;
use super::shape::Shape;
use super::weight::Weight;
use crate::isa::{Isa, Level};
use crate::panels::format::ROWS;
use crate::part::Part;

/// How x is laid out for all parts: as 16-bit integers in the order of a level, for panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gemm {
    level: Level,
    blocks: Blocks,
}

impl Gemm {
    /// The gemm for a product, which is exact whether that is wanted or not; `None` with few vectors, and for floating-point
    /// weights.
    pub fn of((level, _): (Level, bool), product: &Product) -> Option<Gemm> {
        let m = product.m as usize;
        let isa = level.isa();
        let fits = isa != Isa::Scalar && Float::of(product.weight.dtype).is_none() && m > FEW;
        let blocks = Blocks::of(m, isa);
        fits.then_some(Gemm { level, blocks })
    }

    /// Bytes that x takes.
    pub fn packed_bytes(self, m: usize, cols: usize) -> usize {
        int16_gemm::packed_bytes(m, cols)
    }

    /// How many groups of outputs there are, and how many of them share a reading of x.
    pub fn groups(self, shape: &Shape) -> (usize, usize) {
        (shape.n.div_ceil(ROWS), GROUPS)
    }

    /// Lays this part's share of x out.
    ///
    /// # Safety
    /// - `reach`: `packed` has room for [`Gemm::packed_bytes`].
    /// - `own`: nobody reads `packed` meanwhile. Each part writes vectors of its own.
    pub unsafe fn pack(self, part: &Part, cols: usize, shape: &Shape, x: &[f32], packed: *mut u8) {
        let range = part.range(self.blocks.count());
        // SAFETY: passes on `reach`; `own`: ranges of parts do not overlap.
        unsafe { int16_gemm::packing(self.level)(cols, (shape, self.blocks), x, range, packed) }
    }

    /// Multiplies this part's groups of rows.
    ///
    /// # Safety
    /// - `reach`: x is laid out at `packed`; `y` is the whole output.
    /// - `own`: nobody else touches the outputs of the groups that the part takes.
    pub unsafe fn multiply(
        self,
        part: &mut Part,
        (weight, level): (&Weight, Level),
        shape: &Shape,
        packed: *const u8,
        (y, outputs): (*mut f32, Outputs),
    ) {
        let Weight::Panels(matrix) = weight else {
            unreachable!("rows of floats have no layout");
        };
        let gemm = Int16Gemm { matrix, level };
        // SAFETY: passes on `reach` and `own`.
        unsafe { multiply_blocked(part, gemm, shape, (packed, self.blocks), (y, outputs)) }
    }
}
