//! Products with many vectors on x86-64: which gemm multiplies, and how x is laid out for it.

mod amx;
pub(super) mod avx2;
pub(super) mod avx512;
mod f16_gemm;
mod f32_gemm;
mod int16_cell;
mod int16_gemm;
mod int8_cell;
mod int8_gemm;
mod kind;
mod vnni;

use std::ops::Range;

use akunu_types::DType;

use self::amx::small_gemm::{self, Digits};
use self::amx::{bf16_gemm, float_gemm};
use self::f16_gemm::F16Gemm;
use self::f32_gemm::F32Gemm;
use self::int8_gemm::Int8Gemm;
use self::int16_gemm::Int16Gemm;
use super::batch::{BATCH, FEW};
use super::blocked_gemm::{Blocks, GROUPS, multiply_blocked};
use super::float_gemv::Float;
use super::shape::Shape;
use super::vectors::Vectors;
use super::weight::Weight;
use crate::isa::{Isa, Level};
use crate::panels::format::{CELL, Quant, ROWS};
use crate::part::Scratch;

/// Which gemm multiplies, and so how x is laid out for all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gemm {
    /// Tiles of bf16, for panels.
    Bf16Tiles,
    /// Tiles of the stored numbers, for some panels and not many vectors.
    SmallTiles(Digits, Quant),
    /// Tiles of two parts, for floating-point weights.
    FloatTiles,
    /// Bytes, for panels of K formats.
    Int8(Blocks),
    /// 16-bit integers, for panels and for floating-point weights of 16 bits.
    Int16(Blocks),
    /// f32, for other floating-point weights.
    F32(Blocks),
}

impl Gemm {
    /// The gemm for `m` vectors of `cols` numbers, which may be wanted exactly; `None` with so few vectors that the weights are
    /// multiplied as they are.
    pub fn of(
        (level, exact): (Level, bool),
        dtype: DType,
        (m, cols): (usize, usize),
    ) -> Option<Gemm> {
        let blocks = Blocks::of(m, level.isa());
        let as_bytes = !exact && Quant::of(dtype).is_some_and(int8_gemm::fits);
        // Turning rows into columns costs more than widening panels.
        const FEW_OF_ROWS: usize = 6 * BATCH;
        let (gemm, few) = match (level.isa(), Float::of(dtype)) {
            (Isa::Amx, None) => (Gemm::tiles(dtype, m), FEW),
            (Isa::Amx, Some(_)) => (Gemm::FloatTiles, FEW),
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, None) if as_bytes => (Gemm::Int8(blocks), FEW),
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, None) => (Gemm::Int16(blocks), FEW),
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, Some(float))
                if f16_gemm::fits(float, cols) =>
            {
                (Gemm::Int16(blocks), FEW_OF_ROWS)
            }
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, Some(_)) => (Gemm::F32(blocks), FEW_OF_ROWS),
            _ => return None,
        };
        (m > few).then_some(gemm)
    }

    /// The tiles for quantised weights.
    fn tiles(dtype: DType, m: usize) -> Gemm {
        let quant = Quant::of(dtype);
        let digits = quant.and_then(|quant| Some((Digits::of(quant)?, quant)));
        match digits {
            Some((digits, quant)) if m <= small_gemm::MOST => Gemm::SmallTiles(digits, quant),
            _ => Gemm::Bf16Tiles,
        }
    }

    /// Bytes that x takes.
    pub fn packed_bytes(self, m: usize, cols: usize) -> usize {
        match self {
            Gemm::Bf16Tiles => bf16_gemm::packed_bytes(m, cols.div_ceil(CELL)),
            Gemm::SmallTiles(..) => small_gemm::packed_bytes(m, cols.div_ceil(CELL)),
            Gemm::FloatTiles => float_gemm::packed_bytes(m, cols),
            Gemm::Int8(_) => int8_gemm::packed_bytes(m, cols),
            Gemm::Int16(_) => int16_gemm::packed_bytes(m, cols),
            Gemm::F32(_) => f32_gemm::packed_bytes(m, cols),
        }
    }

    /// Outputs of a group.
    pub fn group(self) -> usize {
        match self {
            Gemm::Int8(_) | Gemm::Int16(_) | Gemm::F32(_) | Gemm::SmallTiles(..) => ROWS,
            Gemm::Bf16Tiles | Gemm::FloatTiles => bf16_gemm::PAIR,
        }
    }

    /// Most groups that share a reading of x.
    pub fn groups_at_once(self, m: usize) -> usize {
        match self {
            Gemm::Int8(_) | Gemm::Int16(_) | Gemm::F32(_) => GROUPS,
            Gemm::SmallTiles(..) => small_gemm::SLAB,
            Gemm::Bf16Tiles | Gemm::FloatTiles => bf16_gemm::pairs_at_once(m),
        }
    }

    /// The pieces of `m` vectors of `cols` numbers that can be laid out one by one.
    pub fn pieces_of_x(self, m: usize, cols: usize) -> usize {
        match self {
            Gemm::Bf16Tiles | Gemm::FloatTiles => bf16_gemm::tile_rows(m),
            Gemm::SmallTiles(..) => small_gemm::cells(m, cols / CELL),
            Gemm::Int8(blocks) | Gemm::Int16(blocks) | Gemm::F32(blocks) => blocks.count(),
        }
    }

    /// Lays pieces `range` of x out.
    ///
    /// # Safety
    /// - `level`: that which the gemm was [chosen](Gemm::of) for.
    /// - `reach`: `packed` has room for [`Gemm::packed_bytes`].
    /// - `own`: nobody else touches these pieces of `packed`.
    pub unsafe fn pack(self, x: &Vectors, range: Range<usize>, packed: *mut u8) {
        // SAFETY: passes on `level`, `reach` and `own`.
        unsafe {
            match self {
                Gemm::Bf16Tiles => bf16_gemm::pack_x(x, range, packed),
                Gemm::SmallTiles(digits, quant) => {
                    small_gemm::pack_x((digits, quant), x, range, packed);
                }
                Gemm::FloatTiles => float_gemm::pack_x(x, range, packed),
                Gemm::Int8(blocks) => int8_gemm::pack_x(blocks, x, range, packed),
                Gemm::Int16(blocks) => int16_gemm::pack_x(blocks, x, range, packed),
                Gemm::F32(blocks) => f32_gemm::pack_x(blocks, x, range, packed),
            }
        }
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
        // SAFETY: passes on `reach` and `own`; `level`: proved by the value, and tiles are chosen for AMX alone.
        unsafe {
            match (weight, self) {
                (Weight::Panels(matrix), Gemm::Int8(blocks)) => {
                    let gemm = Int8Gemm { matrix, level };
                    multiply_blocked(scratch, gemm, shape, (packed, blocks), (y, range));
                }
                (Weight::Panels(matrix), Gemm::Int16(blocks)) => {
                    let gemm = Int16Gemm { matrix, level };
                    multiply_blocked(scratch, gemm, shape, (packed, blocks), (y, range));
                }
                (Weight::Rows(rows), Gemm::Int16(blocks)) => {
                    let gemm = F16Gemm { rows, level };
                    multiply_blocked(scratch, gemm, shape, (packed, blocks), (y, range));
                }
                (Weight::Rows(rows), Gemm::F32(blocks)) => {
                    let gemm = F32Gemm { rows, level };
                    multiply_blocked(scratch, gemm, shape, (packed, blocks), (y, range));
                }
                (Weight::Panels(matrix), Gemm::SmallTiles(..)) => {
                    let scratch = scratch.take::<u8>(small_gemm::SCRATCH).as_mut_ptr();
                    small_gemm::multiply(matrix, shape, packed, (y, scratch), range);
                }
                (Weight::Panels(matrix), _) => {
                    let scratch = scratch.take::<u8>(bf16_gemm::SCRATCH).as_mut_ptr();
                    bf16_gemm::multiply(matrix, shape, packed, (y, scratch), range);
                }
                (Weight::Rows(rows), _) => {
                    let scratch = scratch.take::<u8>(float_gemm::SCRATCH).as_mut_ptr();
                    float_gemm::multiply(rows, shape, packed, (y, scratch), range);
                }
            }
        }
    }
}
