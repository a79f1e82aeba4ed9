use akunu_kernels::case::{Rng, nmse};
use akunu_kernels::weight::WeightLayout;
use akunu_types::DType;
use half::f16;

use super::*;
use crate::matmul::blocked_gemm::testing::{Packing, exact, levels, products};

/// A last group and a last chunk that are not whole.
const N: usize = 53;
const COLS: usize = CHUNK * CELL + 3 * CELL;

/// The products of `m` vectors.
fn rounded(rows: &Rows, level: Level, x: &[f32], m: usize) -> Vec<f32> {
    let packing = Packing {
        bytes: int16_gemm::packed_bytes,
        pack: int16_gemm::pack_x,
    };
    products(
        (F16Gemm { rows, level }, level),
        packing,
        [m, N, COLS],
        x,
        1,
    )
}

/// The rows of a weight as floats.
fn wide(weight: &WeightLayout, bytes: &[u8]) -> Vec<Vec<f32>> {
    (0..N).map(|n| weight.row(bytes, n)).collect()
}

/// A number of another row or column would give another product, and fewer bits a larger error.
#[test]
fn rounded_weights_give_the_products_of_their_rows() {
    for dtype in [DType::F16, DType::BF16] {
        let weight = WeightLayout::contiguous(dtype, N, COLS);
        let bytes = weight.random(&mut Rng::new(3));
        let rows = Rows::of(&weight, &bytes).unwrap();
        for (level, m) in levels()
            .into_iter()
            .flat_map(|level| [9, 12, 17, 29].map(|m| (level, m)))
        {
            let x = Rng::new(4).floats(m * COLS, 1.0);
            let error = nmse(
                &rounded(&rows, level, &x, m),
                &exact(&wide(&weight, &bytes), &x, COLS),
            );
            assert!(error < 4e-8, "{level}, {dtype}, {m} vectors: {error:e}");
        }
    }
}

/// A matrix of one number.
fn filled(number: f32) -> (WeightLayout, Vec<u8>) {
    let weight = WeightLayout::contiguous(DType::F16, N, COLS);
    (weight, f16::from_f32(number).to_le_bytes().repeat(N * COLS))
}

/// The largest sums that there can be: of equal weights and equal activations.
#[test]
fn no_sum_overflows() {
    for number in [65504.0, -65504.0, 6e-8, 0.0] {
        let (weight, bytes) = filled(number);
        let rows = Rows::of(&weight, &bytes).unwrap();
        let x = vec![3.0; 9 * COLS];
        for level in levels() {
            let (y, exact) = (
                rounded(&rows, level, &x, 9),
                exact(&wide(&weight, &bytes), &x, COLS),
            );
            for (y, exact) in y.iter().zip(exact) {
                assert!(
                    (y - exact).abs() <= 1e-6 * exact.abs(),
                    "{level}: {y} for {exact}"
                );
            }
        }
    }
}

/// What is not a number must not become one.
#[test]
fn numbers_that_are_none_stay_so() {
    for number in [f32::NAN, f32::INFINITY] {
        let (weight, bytes) = filled(number);
        let rows = Rows::of(&weight, &bytes).unwrap();
        for level in levels() {
            let y = rounded(&rows, level, &vec![1.0; 9 * COLS], 9);
            assert!(y.iter().all(|y| !y.is_finite()), "{level}: {number}");
        }
    }
}
