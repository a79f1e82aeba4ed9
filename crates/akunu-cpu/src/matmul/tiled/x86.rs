//! The ways of x86-64.

use akunu_kernels::kernel::matmul::product::Product;

use crate::isa::Isa;
use crate::matmul::batch::{BATCH, FEW};
use crate::matmul::blocked::{Blocks, PANELS};
use crate::matmul::bytes::{self, Bytes};
use crate::matmul::columns::{self, Columns};
use crate::matmul::half_pairs::{self, HalfPairs};
use crate::matmul::outputs::{Outputs, multiply_blocked};
use crate::matmul::pairs::{self, Pairs};
use crate::matmul::rows::Float;
use crate::matmul::shape::Shape;
use crate::matmul::unscaled_tiles::{self, Digits};
use crate::matmul::weight::Weight;
use crate::matmul::{float_gemm, gemm};
use crate::panels::format::{CELL, Quant, ROWS};
use crate::part::Part;

/// How x is laid out for all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Tiles for panels.
    Tiles,
    /// Tiles for some panels and not many vectors.
    UnscaledTiles(Digits, Quant),
    /// Tiles for floating-point weights.
    FloatTiles,
    /// Bytes, for panels of K formats.
    Bytes(Blocks),
    /// 16-bit integers, for panels and for floating-point weights of 16 bits.
    Pairs(Blocks),
    /// f32, for other floating-point weights.
    Columns(Blocks),
}

impl Layout {
    /// The layout for a product, which may be wanted exactly; `None` with so few vectors that the weights are multiplied as
    /// they are.
    pub fn of((isa, exact): (Isa, bool), product: &Product) -> Option<Layout> {
        let (m, cols) = (product.m as usize, product.k as usize);
        let blocks = Blocks::of(m, isa);
        let as_bytes = !exact && Quant::of(product.weight.dtype).is_some_and(bytes::fits);
        // Turning rows into columns costs more than widening panels.
        const FEW_OF_ROWS: usize = 6 * BATCH;
        let (layout, few) = match (isa, Float::of(product.weight.dtype)) {
            (Isa::Amx, None) => (Layout::tiles(product), FEW),
            (Isa::Amx, Some(_)) => (Layout::FloatTiles, FEW),
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, None) if as_bytes => {
                (Layout::Bytes(blocks), FEW)
            }
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, None) => (Layout::Pairs(blocks), FEW),
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, Some(float))
                if half_pairs::fits(float, cols) =>
            {
                (Layout::Pairs(blocks), FEW_OF_ROWS)
            }
            (Isa::Avx512 | Isa::AvxVnni | Isa::Avx2, Some(_)) => {
                (Layout::Columns(blocks), FEW_OF_ROWS)
            }
            _ => return None,
        };
        (m > few).then_some(layout)
    }

    /// The tiles for quantised weights.
    fn tiles(product: &Product) -> Layout {
        let quant = Quant::of(product.weight.dtype);
        let digits = quant.and_then(|quant| Some((Digits::of(quant)?, quant)));
        match digits {
            Some((digits, quant)) if product.m as usize <= unscaled_tiles::MOST => {
                Layout::UnscaledTiles(digits, quant)
            }
            _ => Layout::Tiles,
        }
    }

    /// Bytes that x takes.
    pub fn bytes(self, m: usize, cols: usize) -> usize {
        match self {
            Layout::Tiles => gemm::packed_bytes(m, cols.div_ceil(CELL)),
            Layout::UnscaledTiles(..) => unscaled_tiles::packed_bytes(m, cols.div_ceil(CELL)),
            Layout::FloatTiles => float_gemm::packed_bytes(m, cols),
            Layout::Bytes(_) => bytes::packed_bytes(m, cols),
            Layout::Pairs(_) => pairs::packed_bytes(m, cols),
            Layout::Columns(_) => columns::packed_bytes(m, cols),
        }
    }

    /// How many groups of outputs there are, and how many of them share a reading of x.
    pub fn groups(self, shape: &Shape) -> (usize, usize) {
        match self {
            Layout::Bytes(_) | Layout::Pairs(_) | Layout::Columns(_) => {
                (shape.n.div_ceil(ROWS), PANELS)
            }
            Layout::UnscaledTiles(..) => (shape.n.div_ceil(ROWS), unscaled_tiles::SLAB),
            Layout::Tiles | Layout::FloatTiles => {
                (shape.n.div_ceil(gemm::PAIR), gemm::pairs_at_once(shape))
            }
        }
    }

    /// Lays this part's share of x out.
    ///
    /// # Safety
    /// The machine has the instructions, `packed` has room for [`Layout::bytes`], and each part has vectors of its own.
    pub unsafe fn pack(self, part: &Part, cols: usize, shape: &Shape, x: &[f32], packed: *mut u8) {
        // SAFETY: as the caller says.
        unsafe {
            match self {
                Layout::Tiles => {
                    let range = part.range(shape.tile_rows());
                    gemm::pack_x(cols, shape, x, range, packed);
                }
                Layout::UnscaledTiles(digits, quant) => {
                    let cells = cols / CELL;
                    let range = part.range(unscaled_tiles::cells(shape.m, cells));
                    unscaled_tiles::pack_x((digits, quant, cells), shape, x, range, packed);
                }
                Layout::FloatTiles => {
                    let range = part.range(shape.tile_rows());
                    float_gemm::pack_x(cols, shape, x, range, packed);
                }
                Layout::Bytes(blocks) => {
                    let range = part.range(blocks.count());
                    bytes::pack_x(cols, (shape, blocks), x, range, packed);
                }
                Layout::Pairs(blocks) => {
                    let range = part.range(blocks.count());
                    pairs::pack_x(cols, (shape, blocks), x, range, packed);
                }
                Layout::Columns(blocks) => {
                    let range = part.range(blocks.count());
                    columns::pack_x(cols, (shape, blocks), x, range, packed);
                }
            }
        }
    }

    /// Multiplies this part's groups of rows.
    ///
    /// # Safety
    /// The machine has the instructions; x is laid out at `packed`; `y` is the whole output.
    pub unsafe fn multiply(
        self,
        part: &mut Part,
        (weight, isa): (&Weight, Isa),
        shape: &Shape,
        packed: *const u8,
        (y, mut outputs): (*mut f32, Outputs),
    ) {
        // SAFETY: as the caller says.
        unsafe {
            match (weight, self) {
                (Weight::Panels(matrix), Layout::Bytes(blocks)) => {
                    let bytes = Bytes { matrix, isa };
                    multiply_blocked(part, bytes, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Panels(matrix), Layout::Pairs(blocks)) => {
                    let pairs = Pairs { matrix, isa };
                    multiply_blocked(part, pairs, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Rows(rows), Layout::Pairs(blocks)) => {
                    let pairs = HalfPairs { rows, isa };
                    multiply_blocked(part, pairs, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Rows(rows), Layout::Columns(blocks)) => {
                    let columns = Columns::of(rows, isa);
                    multiply_blocked(part, columns, shape, (packed, blocks), (y, outputs));
                }
                (Weight::Panels(matrix), Layout::UnscaledTiles(..)) => {
                    let scratch = part
                        .scratch
                        .take::<u8>(unscaled_tiles::SCRATCH)
                        .as_mut_ptr();
                    while let Some(range) = outputs.take(part) {
                        unscaled_tiles::multiply(matrix, shape, packed, (y, scratch), range);
                    }
                }
                (Weight::Panels(matrix), _) => {
                    let scratch = part.scratch.take::<u8>(gemm::SCRATCH).as_mut_ptr();
                    while let Some(range) = outputs.take(part) {
                        gemm::multiply(matrix, shape, packed, (y, scratch), range);
                    }
                }
                (Weight::Rows(rows), _) => {
                    let scratch = part.scratch.take::<u8>(float_gemm::SCRATCH).as_mut_ptr();
                    while let Some(range) = outputs.take(part) {
                        float_gemm::multiply(rows, shape, packed, (y, scratch), range);
                    }
                }
            }
        }
    }
}
