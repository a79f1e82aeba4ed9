//! Products of many vectors, by tile instructions where the machine has them.

use akunu_kernels::kernel::matmul::product::Product;

use super::dots::BATCH;
use super::gemm::{self, SCRATCH, Shape};
use super::matrix::Matrix;
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
    splits: bool,
}

/// Runs the product with tiles; false when it is not worth it, or the machine has none.
pub(crate) fn run(
    call: &Call,
    part: &mut Part,
    (matrix, product): (&Matrix, &Product),
    x: &[f32],
    y: Place,
) -> bool {
    if call.isa != Isa::Amx || product.m as usize <= FEW {
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
    let bytes = gemm::packed_bytes(matrix.plan.format, shape.m, matrix.plan.cells);
    let Some(tiles) = call.panels.tiles(bytes) else {
        return false;
    };
    pack(part, matrix, &shape, x, tiles);
    let range = part.range(matrix.plan.count().div_ceil(2));
    let scratch = part.scratch.take::<u8>(SCRATCH).as_mut_ptr();
    // The whole of y, as far as the last of its rows goes.
    let [_, _, y_bytes] = product.bytes();
    let y = y.pointer::<f32>(y_bytes / size_of::<f32>());
    // SAFETY: the machine has the instructions; x is packed, since all parts have passed the barrier; each part
    // has panels, and so columns of y, of its own.
    unsafe { gemm::multiply(matrix, &shape, tiles, (y, scratch), range) };
    true
}

/// Cuts x into tiles, all parts together, unless the last product had the same x.
fn pack(part: &mut Part, matrix: &Matrix, shape: &Shape, x: &[f32], tiles: *mut u8) {
    let made_of = Tiled {
        first: x.as_ptr(),
        shape: [shape.m, matrix.plan.cols, shape.lda],
        splits: gemm::splits(matrix.plan.format),
    };
    if part.tiled == Some(made_of) {
        return;
    }
    if part.tiled.is_some() {
        // Another part may still read the tiles of the last product.
        part.wait();
    }
    let rows = part.range(shape.tile_rows());
    // SAFETY: the machine has the instructions, the tiles have room, and each part has rows of its own.
    unsafe { gemm::pack_x(matrix, shape, x, rows, tiles) };
    part.wait();
    part.tiled = Some(made_of);
}
