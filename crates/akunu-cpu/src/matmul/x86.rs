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

use akunu_kernels::kernel::matmul::product::Product;

use self::amx::small_gemm::{self, Digits};
use self::amx::{bf16_gemm, float_gemm};
use self::f16_gemm::F16Gemm;
use self::f32_gemm::F32Gemm;
use self::int8_gemm::Int8Gemm;
use self::int16_gemm::Int16Gemm;
use super::batch::{BATCH, FEW};
use super::blocked_gemm::outputs::{Outputs, multiply_blocked};
use super::blocked_gemm::{Blocks, GROUPS};
use super::float_gemv::{Float, Rows};
use super::shape::Shape;
use super::weight::Weight;
use crate::isa::{Isa, Level};
use crate::panels::format::{CELL, Quant, ROWS};
use crate::panels::matrix::PackedMatrix;
use crate::part::Part;

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
    /// The gemm for a product, which may be wanted exactly; `None` with so few vectors that the weights are multiplied as
    /// they are.
    pub fn of((level, exact): (Level, bool), product: &Product) -> Option<Gemm> {
        let (m, cols) = (product.m as usize, product.k as usize);
        let blocks = Blocks::of(m, level.isa());
        let as_bytes = !exact && Quant::of(product.weight.dtype).is_some_and(int8_gemm::fits);
        // Turning rows into columns costs more than widening panels.
        const FEW_OF_ROWS: usize = 6 * BATCH;
        let (gemm, few) = match (level.isa(), Float::of(product.weight.dtype)) {
            (Isa::Amx, None) => (Gemm::tiles(product), FEW),
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
    fn tiles(product: &Product) -> Gemm {
        let quant = Quant::of(product.weight.dtype);
        let digits = quant.and_then(|quant| Some((Digits::of(quant)?, quant)));
        match digits {
            Some((digits, quant)) if product.m as usize <= small_gemm::MOST => {
                Gemm::SmallTiles(digits, quant)
            }
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

    /// How many groups of outputs there are, and how many of them share a reading of x.
    pub fn groups(self, shape: &Shape) -> (usize, usize) {
        match self {
            Gemm::Int8(_) | Gemm::Int16(_) | Gemm::F32(_) => (shape.n.div_ceil(ROWS), GROUPS),
            Gemm::SmallTiles(..) => (shape.n.div_ceil(ROWS), small_gemm::SLAB),
            Gemm::Bf16Tiles | Gemm::FloatTiles => (
                shape.n.div_ceil(bf16_gemm::PAIR),
                bf16_gemm::pairs_at_once(shape),
            ),
        }
    }

    /// Lays this part's share of x out.
    ///
    /// # Safety
    /// - `level`: that which the gemm was [chosen](Gemm::of) for.
    /// - `reach`: `packed` has room for [`Gemm::packed_bytes`].
    /// - `own`: nobody reads `packed` meanwhile. Each part writes vectors of its own.
    pub unsafe fn pack(self, part: &Part, cols: usize, shape: &Shape, x: &[f32], packed: *mut u8) {
        // SAFETY: passes on `level` and `reach`; `own`: ranges of parts do not overlap.
        unsafe {
            match self {
                Gemm::Bf16Tiles => {
                    let range = part.range(shape.tile_rows());
                    bf16_gemm::pack_x(cols, shape, x, range, packed);
                }
                Gemm::SmallTiles(digits, quant) => {
                    let cells = cols / CELL;
                    let range = part.range(small_gemm::cells(shape.m, cells));
                    small_gemm::pack_x((digits, quant, cells), shape, x, range, packed);
                }
                Gemm::FloatTiles => {
                    let range = part.range(shape.tile_rows());
                    float_gemm::pack_x(cols, shape, x, range, packed);
                }
                Gemm::Int8(blocks) => {
                    let range = part.range(blocks.count());
                    int8_gemm::pack_x(cols, (shape, blocks), x, range, packed);
                }
                Gemm::Int16(blocks) => {
                    let range = part.range(blocks.count());
                    int16_gemm::pack_x(cols, (shape, blocks), x, range, packed);
                }
                Gemm::F32(blocks) => {
                    let range = part.range(blocks.count());
                    f32_gemm::pack_x(cols, (shape, blocks), x, range, packed);
                }
            }
        }
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
        // SAFETY: passes on `reach` and `own`; `level`: proved by the value.
        unsafe {
            match (weight, self) {
                (Weight::Panels(matrix), Gemm::Int8(blocks)) => {
                    let gemm = Int8Gemm { matrix, level };
                    multiply_blocked(part, gemm, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Panels(matrix), Gemm::Int16(blocks)) => {
                    let gemm = Int16Gemm { matrix, level };
                    multiply_blocked(part, gemm, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Rows(rows), Gemm::Int16(blocks)) => {
                    let gemm = F16Gemm { rows, level };
                    multiply_blocked(part, gemm, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Rows(rows), Gemm::F32(blocks)) => {
                    let gemm = F32Gemm { rows, level };
                    multiply_blocked(part, gemm, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Panels(matrix), _) => {
                    self.multiply_panels(part, matrix, shape, packed, (y, outputs));
                }
                (Weight::Rows(rows), _) => multiply_rows(part, rows, shape, packed, (y, outputs)),
            }
        }
    }

    /// Multiplies panels by tiles.
    ///
    /// # Safety
    /// That of [`Gemm::multiply`], and `level`: AMX, for which alone tiles are chosen.
    unsafe fn multiply_panels(
        self,
        part: &mut Part,
        matrix: &PackedMatrix,
        shape: &Shape,
        packed: *const u8,
        (y, mut outputs): (*mut f32, Outputs),
    ) {
        let is_small = matches!(self, Gemm::SmallTiles(..));
        let bytes = if is_small {
            small_gemm::SCRATCH
        } else {
            bf16_gemm::SCRATCH
        };
        let scratch = part.scratch.take::<u8>(bytes).as_mut_ptr();
        while let Some(range) = outputs.take(part) {
            // SAFETY: passes on `level` and `reach`; `own`: each part takes groups of its own.
            unsafe {
                if is_small {
                    small_gemm::multiply(matrix, shape, packed, (y, scratch), range);
                } else {
                    bf16_gemm::multiply(matrix, shape, packed, (y, scratch), range);
                }
            }
        }
    }
}

/// Multiplies floating-point rows by tiles.
///
/// # Safety
/// That of [`Gemm::multiply`], and `level`: AMX.
unsafe fn multiply_rows(
    part: &mut Part,
    rows: &Rows,
    shape: &Shape,
    packed: *const u8,
    (y, mut outputs): (*mut f32, Outputs),
) {
    let scratch = part.scratch.take::<u8>(float_gemm::SCRATCH).as_mut_ptr();
    while let Some(range) = outputs.take(part) {
        // SAFETY: passes on `level` and `reach`; `own`: each part takes groups of its own.
        unsafe { float_gemm::multiply(rows, shape, packed, (y, scratch), range) };
    }
}
