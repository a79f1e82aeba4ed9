use akunu_kernels::case::Rng;
use akunu_kernels::weight;
use akunu_types::DType;
use akunu_types::format::{BlockQ4K, BlockQ5K, BlockQ6K};
use half::f16;

use super::*;
use crate::matmul::blocked_gemm::testing::quantised::{ROWS_OF_ALL, cols, error, laid_out, matrix};
use crate::matmul::blocked_gemm::testing::{Packing, levels, products};
use crate::panels::pack::Source;

/// The formats that are multiplied in this way.
fn formats() -> Vec<DType> {
    let fits = |dtype: &DType| Quant::of(*dtype).is_some_and(fits);
    DType::all().filter(fits).collect()
}

fn many(level: Level, matrix: &PackedMatrix, x: &[f32], m: usize, share: usize) -> Vec<f32> {
    let packing = Packing {
        bytes: packed_bytes,
        pack: pack_x,
    };
    let sizes = [m, ROWS_OF_ALL, matrix.shape.cols];
    products(
        (Int8Gemm { matrix, level }, level),
        packing,
        sizes,
        x,
        share,
    )
}

/// x as it is multiplied: `scale * v`, with a scale for each cell.
fn rounded(x: &[f32]) -> Vec<f32> {
    let cells = x.chunks_exact(CELL).flat_map(|cell| {
        let largest = cell.iter().fold(0f32, |most, x| most.max(x.abs()));
        let (scale, inverse) = scale_and_inverse(largest, LARGEST);
        cell.iter()
            .map(move |x| scale * (x * inverse).round_ties_even())
    });
    cells.collect()
}

#[test]
fn the_k_formats_but_the_smallest_are_multiplied_as_bytes() {
    let expected = [DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K];
    assert_eq!(formats(), expected);
}

/// The products are those of the rounded activations, up to the last bits of f32: a byte of another row or column would be far
/// beyond that. Rounding costs 2e-5. Every level gives the same bits, however the panels are shared out.
#[test]
fn products_are_those_of_rounded_activations_on_every_level() {
    for dtype in formats() {
        let matrix = matrix(dtype);
        for (m, share) in [(9, 0), (11, 1), (17, 2), (34, 3)] {
            let x = Rng::new(7).floats(m * cols(dtype), 1.0);
            let mut of_levels = Vec::new();
            for level in levels() {
                let many = many(level, &matrix, &x, m, share);
                let of_rounded = error(&matrix, &rounded(&x), &many);
                assert!(of_rounded < 1e-12, "{level}, {dtype}, {m}: {of_rounded:e}");
                let of_all = error(&matrix, &x, &many);
                assert!(of_all < 1e-4, "{level}, {dtype}, {m}: {of_all:e}");
                of_levels.push(many);
            }
            let first = of_levels.first();
            assert!(of_levels.iter().all(|y| Some(y) == first), "{dtype}, {m}");
        }
    }
}

/// What is no number is not taken for one: NaN and infinity make no finite products.
#[test]
fn what_is_not_finite_stays_so() {
    let m = 9;
    for dtype in formats() {
        let matrix = matrix(dtype);
        for wrong in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = Rng::new(7).floats(m * matrix.shape.cols, 1.0);
            x[matrix.shape.cols / 2] = wrong;
            for level in levels() {
                let y = many(level, &matrix, &x, m, 2);
                let (first, others) = y.split_at(ROWS_OF_ALL);
                assert!(first.iter().all(|y| !y.is_finite()), "{level}, {wrong}");
                assert!(others.iter().all(|y| y.is_finite()), "{level}, {wrong}");
            }
        }
    }
}

/// Checks the products of a matrix of such blocks, each of 256 numbers that are `weight`, with vectors whose numbers all are 1 or -1:
/// the largest that there are, so that all bytes are 127.
fn check_largest<B: bytemuck::Pod>(dtype: DType, block: B, weight: f32) {
    let (m, cols) = (9, cols(dtype));
    let blocks = vec![block; ROWS_OF_ALL * cols / 256];
    let layout = weight::WeightLayout::contiguous(dtype, ROWS_OF_ALL, cols);
    let matrix = laid_out(&Source::of(layout, bytemuck::cast_slice(&blocks)).unwrap());
    for sign in [-1.0, 1.0] {
        let exact = sign * cols as f32 * weight;
        for level in levels() {
            let y = many(level, &matrix, &vec![sign; m * cols], m, 2);
            let wrong = y.iter().find(|&&y| (y / exact - 1.0).abs() > 1e-6);
            assert_eq!(wrong, None, "{level}, {dtype}: instead of {exact}");
        }
    }
}

/// The largest sums that a file can ask for fit in words.
#[test]
fn the_largest_integer_sums_are_exact() {
    let six = |low: u8, high: u8, scale: i8| BlockQ6K {
        ql: [low; 128],
        qh: [high; 64],
        scales: [scale; 16],
        d: f16::ONE,
    };
    check_largest(DType::Q6_K, six(0, 0, i8::MIN), 32.0 * 128.0);
    check_largest(DType::Q6_K, six(0xff, 0xff, i8::MAX), 31.0 * 127.0);
    check_largest(DType::Q6_K, six(0, 0, i8::MAX), -32.0 * 127.0);
    // Scales of 63 and minima of 0, in the order of the packed twelve bytes.
    let scales = [
        0xff, 0xff, 0xff, 0xff, 0xc0, 0xc0, 0xc0, 0xc0, 0x0f, 0x0f, 0x0f, 0x0f,
    ];
    let four = BlockQ4K {
        d: f16::ONE,
        dmin: f16::ZERO,
        scales,
        qs: [0xff; 128],
    };
    check_largest(DType::Q4_K, four, 63.0 * 15.0);
    let five = BlockQ5K {
        d: f16::ONE,
        dmin: f16::ZERO,
        scales,
        qh: [0xff; 32],
        qs: [0xff; 128],
    };
    check_largest(DType::Q5_K, five, 63.0 * 31.0);
}
