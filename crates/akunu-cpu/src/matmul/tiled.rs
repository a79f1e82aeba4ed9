//! Products of many vectors, where weights are worth being made into something that is multiplied faster: tiles for
//! the tile instructions, bytes, 16-bit integers or f32 for plain ones.

use std::ops::Range;

use akunu_kernels::kernel::matmul::product::Product;

use super::batch::{BATCH, FEW};
use super::blocked::{self, Blocks, Form};
use super::bytes::{self, Bytes};
use super::columns::{self, Columns};
use super::gemm::Shape;
use super::half_pairs::{self, HalfPairs};
use super::pairs::{self, Pairs};
use super::rows::Float;
use super::weight::Weight;
use super::{float_gemm, gemm};
use crate::call::Call;
use crate::isa::Isa;
use crate::kept::UntilBarrier;
use crate::panels::format::{CELL, Quant, ROWS};
use crate::part::Part;
use crate::pieces::Pieces;
use crate::place::Place;

/// How x is laid out for all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Tiles for panels.
    Tiles,
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
    /// The layout for a product; `None` with so few vectors that the weights are multiplied as they are.
    fn of((isa, exact): (Isa, bool), product: &Product) -> Option<Layout> {
        let (m, cols) = (product.m as usize, product.k as usize);
        let blocks = Blocks::of(m, isa);
        let as_bytes = !exact && Quant::of(product.weight.dtype).is_some_and(bytes::fits);
        // Turning rows into columns costs more than widening panels.
        const FEW_OF_ROWS: usize = 6 * BATCH;
        let (layout, few) = match (isa, Float::of(product.weight.dtype)) {
            (Isa::Amx, None) => (Layout::Tiles, FEW),
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

    /// Bytes that x takes.
    fn bytes(self, m: usize, cols: usize) -> usize {
        match self {
            Layout::Tiles => gemm::packed_bytes(m, cols.div_ceil(CELL)),
            Layout::FloatTiles => float_gemm::packed_bytes(m, cols),
            Layout::Bytes(_) => bytes::packed_bytes(m, cols),
            Layout::Pairs(_) => pairs::packed_bytes(m, cols),
            Layout::Columns(_) => columns::packed_bytes(m, cols),
        }
    }
}

/// Which x is laid out, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiled {
    /// The address of the first number.
    first: usize,
    shape: [usize; 3],
    layout: Layout,
}

/// Bytes of what a product makes of x.
pub(crate) fn bytes(isa: Isa, exact: bool, product: &Product) -> usize {
    let (m, cols) = (product.m as usize, product.k as usize);
    Layout::of((isa, exact), product).map_or(0, |layout| layout.bytes(m, cols))
}

/// Runs the product in one of these ways; false when none is worth it.
pub(crate) fn run(
    call: &Call,
    part: &mut Part,
    (weight, product): (&Weight, &Product),
    x: &[f32],
    y: Place,
) -> bool {
    let (m, cols) = (product.m as usize, product.k as usize);
    let Some(layout) = Layout::of((call.isa, call.exact), product) else {
        return false;
    };
    let Some(packed) = call.panels.tiles(layout.bytes(m, cols)) else {
        return false;
    };
    let shape = Shape {
        m,
        n: product.n as usize,
        lda: product.lda as usize,
        ldc: product.ldc as usize,
        alpha: product.alpha,
        beta: product.beta,
    };
    pack(part, (layout, cols), &shape, x, packed);
    // The whole of y, as far as the last of its rows goes.
    let [_, _, y_bytes] = product.bytes();
    let y = y.pointer::<f32>(y_bytes / size_of::<f32>());
    let mut outputs = Outputs::divide(part, layout, &shape);
    // SAFETY: the machine has the instructions; x is laid out, since all parts have passed the barrier; each part
    // has rows of the weight, and so columns of y, of its own.
    unsafe {
        match (weight, layout) {
            (Weight::Panels(matrix), Layout::Bytes(blocks)) => {
                let bytes = Bytes {
                    matrix,
                    isa: call.isa,
                };
                blocked(part, bytes, &shape, (packed, blocks), (y, outputs));
            }
            (Weight::Panels(matrix), Layout::Pairs(blocks)) => {
                let pairs = Pairs {
                    matrix,
                    isa: call.isa,
                };
                blocked(part, pairs, &shape, (packed, blocks), (y, outputs));
            }
            (Weight::Rows(rows), Layout::Pairs(blocks)) => {
                let pairs = HalfPairs {
                    rows,
                    isa: call.isa,
                };
                blocked(part, pairs, &shape, (packed, blocks), (y, outputs));
            }
            (Weight::Rows(rows), Layout::Columns(blocks)) => {
                let columns = Columns::of(rows, call.isa);
                blocked(part, columns, &shape, (packed, blocks), (y, outputs));
            }
            (Weight::Panels(matrix), _) => {
                let scratch = part.scratch.take::<u8>(gemm::SCRATCH).as_mut_ptr();
                while let Some(range) = outputs.take(part) {
                    gemm::multiply(matrix, &shape, packed, (y, scratch), range);
                }
            }
            (Weight::Rows(rows), _) => {
                let scratch = part.scratch.take::<u8>(float_gemm::SCRATCH).as_mut_ptr();
                while let Some(range) = outputs.take(part) {
                    float_gemm::multiply(rows, &shape, packed, (y, scratch), range);
                }
            }
        }
    }
    true
}

/// Multiplies this part's groups of rows.
///
/// # Safety
/// The machine has the instructions of the form; x is laid out for it; `y` is the whole output.
unsafe fn blocked<F: Form>(
    part: &mut Part,
    form: F,
    shape: &Shape,
    (packed, blocks): (*const u8, Blocks),
    (y, mut outputs): (*mut f32, Outputs),
) {
    let bytes = blocked::scratch_bytes::<F>(blocks);
    let job = blocked::Job {
        form,
        shape,
        blocks,
        packed,
        scratch: part.scratch.take::<u8>(bytes).as_mut_ptr(),
        y,
    };
    while let Some(range) = outputs.take(part) {
        // SAFETY: as the caller says; each part has groups of its own.
        unsafe { job.run(range) };
    }
}

/// The outputs of a product: groups of rows of the weight, of which the parts take some at once.
struct Outputs {
    groups: usize,
    at_once: usize,
    pieces: Pieces,
}

impl Outputs {
    /// As many at once as share a reading of x, if there are enough for all parts.
    fn divide(part: &mut Part, layout: Layout, shape: &Shape) -> Outputs {
        let (groups, most) = match layout {
            Layout::Bytes(_) | Layout::Pairs(_) | Layout::Columns(_) => {
                (shape.n.div_ceil(ROWS), blocked::PANELS)
            }
            Layout::Tiles | Layout::FloatTiles => {
                (shape.n.div_ceil(gemm::PAIR), gemm::pairs_at_once(shape))
            }
        };
        let at_once = (groups / part.count).clamp(1, most);
        Outputs {
            groups,
            at_once,
            pieces: part.divide(groups.div_ceil(at_once)),
        }
    }

    /// The next groups for this part.
    fn take(&mut self, part: &Part) -> Option<Range<usize>> {
        let piece = part.take(&mut self.pieces)?;
        Some(piece.start * self.at_once..self.groups.min(piece.end * self.at_once))
    }
}

/// Lays x out, all parts together, unless the last product had the same x.
fn pack(
    part: &mut Part,
    (layout, cols): (Layout, usize),
    shape: &Shape,
    x: &[f32],
    packed: *mut u8,
) {
    let made_of = Tiled {
        first: x.as_ptr().addr(),
        shape: [shape.m, cols, shape.lda],
        layout,
    };
    let section = part.section();
    let last = part.kept.get::<UntilBarrier<Tiled>>().get(section).copied();
    if last == Some(made_of) {
        return;
    }
    if last.is_some() {
        // Another part may still read what the last product had.
        part.wait();
    }
    // SAFETY: the machine has the instructions, the memory has room, and each part has vectors of its own.
    unsafe {
        match layout {
            Layout::Tiles => {
                let range = part.range(shape.tile_rows());
                gemm::pack_x(cols, shape, x, range, packed);
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
    part.wait();
    let tiles: &mut UntilBarrier<Tiled> = part.kept.get();
    tiles.set(Some(made_of), section);
}
