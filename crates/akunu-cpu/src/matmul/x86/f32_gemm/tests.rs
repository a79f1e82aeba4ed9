use akunu_kernels::case::{Rng, nmse};
use akunu_kernels::weight::WeightLayout;
use akunu_types::DType;

use super::*;
use crate::matmul::blocked_gemm::testing::{Packing, exact, levels, products};

/// Rows and columns that are no multiples of anything: a last group, a last chunk and a last vector that are not whole.
const N: usize = 53;
const COLS: usize = CHUNK + 77;

/// A number of another row or column would give another product; what f32 rounds is 1e-14 of the power.
#[test]
fn columns_give_the_products_of_their_rows() {
    let packing = Packing {
        bytes: packed_bytes,
        pack: pack_x,
    };
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let weight = WeightLayout::contiguous(dtype, N, COLS);
        let bytes = weight.random(&mut Rng::new(3));
        let rows = Rows::of(&weight, &bytes).unwrap();
        let wide: Vec<Vec<f32>> = (0..N).map(|n| weight.row(&bytes, n)).collect();
        for level in levels() {
            for m in [9, 12, 17, 29] {
                let x = Rng::new(4).floats(m * COLS, 1.0);
                let kernel = F32Gemm { rows: &rows, level };
                let y = products((kernel, level), packing, [m, N, COLS], &x, 1);
                let error = nmse(&y, &exact(&wide, &x, COLS));
                assert!(error < 1e-12, "{level}, {dtype}, {m} vectors: {error:e}");
            }
        }
    }
}
