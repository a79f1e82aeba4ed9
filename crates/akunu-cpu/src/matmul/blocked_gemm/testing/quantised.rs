//! What the gemms for quantised weights must do.

use std::sync::Arc;

use akunu_kernels::case::{Rng, nmse};
use akunu_kernels::weight;
use akunu_program::Storage;
use akunu_types::DType;

use super::{exact, levels};
use crate::isa::Level;
use crate::matmul::activation::Activations;
use crate::matmul::batch::BATCH;
use crate::matmul::gemv::Gemv;
use crate::memory::Pages;
use crate::panels::format::{CELL, Quant, ROWS, SUPER};
use crate::panels::matrix::{PackedMatrix, PackedShape};
use crate::panels::pack::Source;

/// The products of a gemm, on a level, of a matrix with vectors, and the number of these; the panels in two shares, of which the
/// first has so many.
pub type Many = fn(Level, &PackedMatrix, &[f32], usize, usize) -> Vec<f32>;

/// Five panels, so that one is left when they are taken in fours and in pairs.
pub const ROWS_OF_ALL: usize = 5 * ROWS;

/// Three chunks of a super-block, the last one not whole where the format allows that.
pub fn cols(dtype: DType) -> usize {
    match dtype.block_len() {
        256 => 3 * SUPER * CELL,
        _ => 5 * SUPER * CELL / 2,
    }
}

/// A random matrix of a format.
pub fn matrix(dtype: DType) -> PackedMatrix {
    let cols = cols(dtype);
    let weight = weight::WeightLayout {
        storage: Storage::contiguous(dtype, [ROWS_OF_ALL, cols], 64),
        ..weight::WeightLayout::contiguous(dtype, ROWS_OF_ALL, cols)
    };
    let bytes = weight.random(&mut Rng::new(5));
    laid_out(&Source::of(weight, &bytes).unwrap())
}

/// The panels of a matrix.
pub fn laid_out(source: &Source) -> PackedMatrix {
    let shape = PackedShape::of(source).unwrap();
    let matrix = PackedMatrix::new(shape, Arc::new(Pages::zeroed(shape.bytes()).unwrap()), 0);
    // SAFETY: nobody else has it.
    unsafe { matrix.fill(source, 0..shape.count()) };
    matrix
}

/// The products with `m` vectors, a few at a time.
pub fn few(level: Level, matrix: &PackedMatrix, x: &[f32], m: usize) -> Vec<f32> {
    let gemv = Gemv::of(level).unwrap();
    let mut quantised: Vec<Activations> = Vec::new();
    quantised.resize_with(m, Default::default);
    for (into, x) in quantised.iter_mut().zip(x.chunks(matrix.shape.cols)) {
        gemv.quantise(into, x, matrix.shape.quant);
    }
    let mut y = vec![f32::NAN; m * ROWS_OF_ALL];
    for at in 0..matrix.shape.count() {
        for (batch, x) in quantised.chunks(BATCH).enumerate() {
            let dots = gemv.panel(matrix.shape.quant, matrix.panel(at), matrix.shape.cells, x);
            for (i, dots) in dots[..x.len()].iter().enumerate() {
                let first = (batch * BATCH + i) * ROWS_OF_ALL + at * ROWS;
                y[first..][..ROWS].copy_from_slice(dots);
            }
        }
    }
    y
}

/// The error of the products of a matrix with vectors, as a share of their power.
pub fn error(matrix: &PackedMatrix, x: &[f32], y: &[f32]) -> f64 {
    let cols = matrix.shape.cols;
    let row = |n: usize| {
        let mut row = vec![0.0; cols];
        matrix.row(n, &mut row);
        row
    };
    let rows: Vec<Vec<f32>> = (0..ROWS_OF_ALL).map(row).collect();
    nmse(y, &exact(&rows, x, cols))
}

/// A row of a batch gets what it gets alone, however many vectors there are, however the panels are shared out, and
/// whichever of its levels the machine uses. What the rounding of activations costs is 1e-9; a word of
/// another row or column would be far beyond that.
pub fn many_vectors_get_the_bits_that_few_get_on_every_level(many: Many) {
    for dtype in DType::all().filter(|dtype| Quant::of(*dtype).is_some()) {
        let matrix = matrix(dtype);
        for (m, share) in [(9, 0), (11, 1), (17, 2), (34, 3)] {
            let x = Rng::new(7).floats(m * cols(dtype), 1.0);
            let mut of_levels = Vec::new();
            for level in levels() {
                let (many, few) = (
                    many(level, &matrix, &x, m, share),
                    few(level, &matrix, &x, m),
                );
                assert!(many == few, "{level}, {dtype}, {m} vectors: other bits");
                let error = error(&matrix, &x, &many);
                assert!(error < 1e-8, "{level}, {dtype}, {m} vectors: {error:e}");
                of_levels.push(many);
            }
            let first = of_levels.first();
            assert!(of_levels.iter().all(|y| Some(y) == first), "{dtype}, {m}");
        }
    }
}

/// What is no number is not taken for one: NaN and infinity make no finite products.
pub fn what_is_not_finite_stays_so(many: Many) {
    let matrix = matrix(DType::Q4_0);
    let m = 9;
    for wrong in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = Rng::new(7).floats(m * matrix.shape.cols, 1.0);
        x[matrix.shape.cols / 2] = wrong;
        for level in levels() {
            for y in [many(level, &matrix, &x, m, 2), few(level, &matrix, &x, m)] {
                let (first, others) = y.split_at(ROWS_OF_ALL);
                assert!(first.iter().all(|y| !y.is_finite()), "{level}, {wrong}");
                assert!(others.iter().all(|y| y.is_finite()), "{level}, {wrong}");
            }
        }
    }
}

/// The largest sums that a file can ask for fit in 32 bits: 6-bit numbers of -32 with scales of -128, and activations
/// which all are the largest.
pub fn the_largest_integer_sums_are_exact(many: Many) {
    use akunu_types::format::BlockQ6K;
    use half::f16;
    let block = BlockQ6K {
        ql: [0; 128],
        qh: [0; 64],
        scales: [i8::MIN; 16],
        d: f16::ONE,
    };
    let cols = cols(DType::Q6_K);
    let blocks = vec![block; ROWS_OF_ALL * cols / 256];
    let weight = weight::WeightLayout::contiguous(DType::Q6_K, ROWS_OF_ALL, cols);
    let matrix = laid_out(&Source::of(weight, bytemuck::cast_slice(&blocks)).unwrap());
    let m = 9;
    for sign in [-1.0, 1.0] {
        let exact = sign * (cols * 32 * 128) as f32;
        let x = vec![sign; m * cols];
        for level in levels() {
            for y in [many(level, &matrix, &x, m, 2), few(level, &matrix, &x, m)] {
                let wrong = y.iter().find(|&&y| (y / exact - 1.0).abs() > 1e-6);
                assert_eq!(wrong, None, "{level}: instead of {exact}");
            }
        }
    }
}
