use super::*;
use crate::matmul::blocked_gemm::testing::quantised::{self, ROWS_OF_ALL};
use crate::matmul::blocked_gemm::testing::{Packing, products};

/// The products with `m` vectors, the panels in two shares.
fn many(level: Level, matrix: &PackedMatrix, x: &[f32], m: usize, share: usize) -> Vec<f32> {
    let packing = Packing {
        bytes: packed_bytes,
        pack: packing(level),
    };
    let sizes = [m, ROWS_OF_ALL, matrix.shape.cols];
    products(
        (Int16Gemm { matrix, level }, level),
        packing,
        sizes,
        x,
        share,
    )
}

#[test]
fn many_vectors_get_the_bits_that_few_get_on_every_level() {
    quantised::many_vectors_get_the_bits_that_few_get_on_every_level(many);
}

#[test]
fn what_is_not_finite_stays_so() {
    quantised::what_is_not_finite_stays_so(many);
}

#[test]
fn the_largest_integer_sums_are_exact() {
    quantised::the_largest_integer_sums_are_exact(many);
}
