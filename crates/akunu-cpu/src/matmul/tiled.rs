//! Products of many vectors, where weights are worth being made into something that is multiplied faster: tiles for
//! the tile instructions, or f32 for plain ones.

use akunu_kernels::kernel::matmul::product::Product;

use super::dots::BATCH;
use super::format::{CELL, ROWS};
use super::gemm::Shape;
use super::product::Weight;
use super::{avx2, columns, expand, float_gemm, gemm};
use crate::call::{Call, Place};
use crate::isa::Isa;
use crate::part::Part;
use crate::pieces::Pieces;
use crate::simd;

/// How x is laid out for all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Tiles for panels.
    Tiles,
    /// Tiles for floating-point weights.
    FloatTiles,
    /// f32, for panels that are widened.
    Columns,
}

impl Layout {
    /// The layout for `m` vectors; `None` for so few that the weights are multiplied as they are.
    fn of(isa: Isa, m: usize, floats: bool) -> Option<Layout> {
        let (layout, few) = match (isa, floats) {
            (Isa::Amx, false) => (Layout::Tiles, 2 * BATCH),
            (Isa::Amx, true) => (Layout::FloatTiles, 2 * BATCH),
            // Products of bytes are fast there: it takes more vectors to make up for the widening.
            (Isa::Avx512, false) => (Layout::Columns, 8 * BATCH),
            (Isa::Avx2, false) => (Layout::Columns, BATCH),
            _ => return None,
        };
        (m > few).then_some(layout)
    }

    /// Bytes that x takes.
    fn bytes(self, m: usize, cols: usize) -> usize {
        match self {
            Layout::Tiles => gemm::packed_bytes(m, cols.div_ceil(CELL)),
            Layout::FloatTiles => float_gemm::packed_bytes(m, cols),
            Layout::Columns => columns::packed_bytes(m, cols),
        }
    }
}

/// Which x is laid out, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiled {
    first: *const f32,
    shape: [usize; 3],
    layout: Layout,
}

/// Bytes of what a product makes of x.
pub(crate) fn bytes(isa: Isa, product: &Product, floats: bool) -> usize {
    let (m, cols) = (product.m as usize, product.k as usize);
    Layout::of(isa, m, floats).map_or(0, |layout| layout.bytes(m, cols))
}

/// Runs the product in one of these ways; false when none is worth it.
pub(crate) fn run(
    call: &Call,
    part: &mut Part,
    (weight, product): (&Weight, &Product),
    x: &[f32],
    y: Place,
) -> bool {
    let floats = matches!(weight, Weight::Rows(_));
    let (m, cols) = (product.m as usize, product.k as usize);
    let Some(layout) = Layout::of(call.isa, m, floats) else {
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
    let (groups, at_once) = match layout {
        Layout::Columns => (shape.n.div_ceil(ROWS), 1),
        Layout::Tiles | Layout::FloatTiles => (
            shape.n.div_ceil(gemm::PAIR),
            gemm::pairs_at_once(&shape, part.count),
        ),
    };
    let mut pieces = part.divide(groups.div_ceil(at_once));
    let take = |part: &Part, pieces: &mut Pieces| {
        let piece = part.take(pieces)?;
        Some(piece.start * at_once..groups.min(piece.end * at_once))
    };
    // SAFETY: the machine has the instructions; x is laid out, since all parts have passed the barrier; each part
    // has rows of the weight, and so columns of y, of its own.
    unsafe {
        match weight {
            Weight::Panels(matrix) if layout == Layout::Columns => {
                let scratch = part.scratch.take(columns::scratch_len(matrix)).as_mut_ptr();
                let (widen, multiply): (columns::Widen, unsafe fn(&columns::Job, _)) =
                    match call.isa {
                        Isa::Avx2 => (avx2::widen_panel, simd::avx2::multiply_columns),
                        _ => (expand::widen, simd::avx512::multiply_columns),
                    };
                let job = columns::Job {
                    matrix,
                    shape: &shape,
                    widen,
                    packed: packed.cast(),
                    scratch,
                    y,
                };
                while let Some(range) = take(part, &mut pieces) {
                    multiply(&job, range);
                }
            }
            Weight::Panels(matrix) => {
                let scratch = part.scratch.take::<u8>(gemm::SCRATCH).as_mut_ptr();
                while let Some(range) = take(part, &mut pieces) {
                    gemm::multiply(matrix, &shape, packed, (y, scratch), range);
                }
            }
            Weight::Rows(rows) => {
                let scratch = part.scratch.take::<u8>(float_gemm::SCRATCH).as_mut_ptr();
                while let Some(range) = take(part, &mut pieces) {
                    float_gemm::multiply(rows, &shape, packed, (y, scratch), range);
                }
            }
        }
    }
    true
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
        first: x.as_ptr(),
        shape: [shape.m, cols, shape.lda],
        layout,
    };
    if part.tiled == Some(made_of) {
        return;
    }
    if part.tiled.is_some() {
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
            Layout::Columns => {
                let range = part.range(columns::blocks(shape.m));
                columns::pack_x(cols, shape, x, range, packed.cast());
            }
        }
    }
    part.wait();
    part.tiled = Some(made_of);
}
