//! Products with many vectors on 64-bit ARM: panels are multiplied as 16-bit integers, on every level.

pub(super) mod neon;

use std::ops::Range;

use akunu_types::DType;

use self::neon::int16_gemm::{self, Int16Gemm};
use super::batch::FEW;
use super::blocked_gemm::{Blocks, GROUPS, multiply_blocked};
use super::float_gemv::Float;
use super::shape::Shape;
use super::vectors::Vectors;
use super::weight::Weight;
use crate::isa::{Isa, Level};
use crate::panels::format::ROWS;
use crate::part::Scratch;

/// How x is laid out for all parts: as 16-bit integers in the order of a level, for panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gemm {
    level: Level,
    blocks: Blocks,
}

impl Gemm {
    /// The gemm for `m` vectors, which is exact whether that is wanted or not; `None` with few vectors, and for floating-point
    /// weights.
    pub fn of((level, _): (Level, bool), dtype: DType, (m, _): (usize, usize)) -> Option<Gemm> {
        let isa = level.isa();
        let fits = isa != Isa::Scalar && Float::of(dtype).is_none() && m > FEW;
        let blocks = Blocks::of(m, isa);
        fits.then_some(Gemm { level, blocks })
    }

    /// Bytes that x takes.
    pub fn packed_bytes(self, m: usize, cols: usize) -> usize {
        int16_gemm::packed_bytes(m, cols)
    }

    /// Outputs of a group.
    pub fn group(self) -> usize {
        ROWS
    }

    /// Most groups that share a reading of x.
    pub fn groups_at_once(self, _: usize) -> usize {
        GROUPS
    }

    /// The pieces of x that can be laid out one by one.
    pub fn pieces_of_x(self, _: usize, _: usize) -> usize {
        self.blocks.count()
    }

    /// Lays pieces `range` of x out.
    ///
    /// # Safety
    /// - `reach`: `packed` has room for [`Gemm::packed_bytes`].
    /// - `own`: nobody else touches these pieces of `packed`.
    pub unsafe fn pack(self, x: &Vectors, range: Range<usize>, packed: *mut u8) {
        // SAFETY: passes on `reach` and `own`.
        unsafe { int16_gemm::packing(self.level)(self.blocks, x, range, packed) }
    }

    /// Computes groups `range` of the outputs.
    ///
    /// # Safety
    /// - `reach`: x is laid out at `packed`; output 0 of vector 0 would be at `y`, and there is memory for those of the groups.
    /// - `own`: nobody else touches these outputs.
    pub unsafe fn multiply(
        self,
        scratch: &mut Scratch,
        (weight, level): (&Weight, Level),
        (shape, packed): (&Shape, *const u8),
        y: *mut f32,
        range: Range<usize>,
    ) {
        let Weight::Panels(matrix) = weight else {
            unreachable!("rows of floats have no layout");
        };
        let gemm = Int16Gemm { matrix, level };
        // SAFETY: passes on `reach` and `own`.
        unsafe { multiply_blocked(scratch, gemm, shape, (packed, self.blocks), (y, range)) }
    }
}
