//! Products of many vectors, by tile instructions where the machine has them.

use akunu_kernels::kernel::matmul::product::Product;

use super::dots::BATCH;
use super::format::CELL;
use super::gemm::Shape;
use super::product::Weight;
use super::{float_gemm, gemm};
use crate::call::{Call, Place};
use crate::isa::Isa;
use crate::part::Part;

/// Most vectors for which the weights are multiplied as they are; for more they are worth making tiles.
const FEW: usize = 2 * BATCH;

/// What the tiles of x that all parts share were made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiled {
    first: *const f32,
    shape: [usize; 3],
    /// Tiles for floating-point weights are others than those for panels.
    of_rows: bool,
}

/// Bytes of the tiles that a product makes of x.
pub(crate) fn bytes(isa: Isa, product: &Product, of_rows: bool) -> usize {
    let (m, cols) = (product.m as usize, product.k as usize);
    if !wanted(isa, m) {
        0
    } else if of_rows {
        float_gemm::packed_bytes(m, cols)
    } else {
        gemm::packed_bytes(m, cols.div_ceil(CELL))
    }
}

fn wanted(isa: Isa, m: usize) -> bool {
    isa == Isa::Amx && m > FEW
}

/// Runs the product with tiles; false when it is not worth it, or the machine has none.
pub(crate) fn run(
    call: &Call,
    part: &mut Part,
    (weight, product): (&Weight, &Product),
    x: &[f32],
    y: Place,
) -> bool {
    if !wanted(call.isa, product.m as usize) {
        return false;
    }
    let shape = Shape {
        m: product.m as usize,
        n: product.n as usize,
        lda: product.lda as usize,
        ldc: product.ldc as usize,
        alpha: product.alpha,
        beta: product.beta,
    };
    let of_rows = matches!(weight, Weight::Rows(_));
    let Some(tiles) = call.panels.tiles(bytes(call.isa, product, of_rows)) else {
        return false;
    };
    pack(part, (weight, product), &shape, x, tiles);
    // The whole of y, as far as the last of its rows goes.
    let [_, _, y_bytes] = product.bytes();
    let y = y.pointer::<f32>(y_bytes / size_of::<f32>());
    let scratch = gemm::SCRATCH.max(float_gemm::SCRATCH);
    let scratch = part.scratch.take::<u8>(scratch).as_mut_ptr();
    let range = part.range(shape.n.div_ceil(gemm::PAIR));
    // SAFETY: the machine has the instructions; x is packed, since all parts have passed the barrier; each part
    // has rows of the weight, and so columns of y, of its own.
    unsafe {
        match weight {
            Weight::Panels(matrix) => gemm::multiply(matrix, &shape, tiles, (y, scratch), range),
            Weight::Rows(rows) => float_gemm::multiply(rows, &shape, tiles, (y, scratch), range),
        }
    }
    true
}

/// Cuts x into tiles, all parts together, unless the last product had the same x.
fn pack(
    part: &mut Part,
    (weight, product): (&Weight, &Product),
    shape: &Shape,
    x: &[f32],
    tiles: *mut u8,
) {
    let made_of = Tiled {
        first: x.as_ptr(),
        shape: [shape.m, product.k as usize, shape.lda],
        of_rows: matches!(weight, Weight::Rows(_)),
    };
    if part.tiled == Some(made_of) {
        return;
    }
    if part.tiled.is_some() {
        // Another part may still read the tiles of the last product.
        part.wait();
    }
    let range = part.range(shape.tile_rows());
    // SAFETY: the machine has the instructions, the tiles have room, and each part has vectors of its own.
    unsafe {
        match weight {
            Weight::Panels(matrix) => gemm::pack_x(matrix, shape, x, range, tiles),
            Weight::Rows(rows) => float_gemm::pack_x(rows.cols, shape, x, range, tiles),
        }
    }
    part.wait();
    part.tiled = Some(made_of);
}
