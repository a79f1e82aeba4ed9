//! What the tests of all forms share.

use std::ops::Range;
use std::sync::Arc;

use akunu_kernels::case::Rng;
use akunu_kernels::weight::{self, MlxLayout, ScaleType};
use akunu_types::DType;

use super::{Blocks, Form, Job, scratch_bytes};
use crate::isa::Isa;
use crate::matmul::gemm::Shape;
use crate::memory::Pages;
use crate::panels::format::{CELL, ROWS, SUPER};
use crate::panels::matrix::{PackedMatrix, PackedShape};
use crate::panels::pack::Source;
use crate::part::{Own, Part, Team};

/// The levels that multiply in these ways.
pub fn levels() -> Vec<Isa> {
    let mut levels = Isa::available();
    levels.retain(|isa| matches!(isa, Isa::Avx2 | Isa::AvxVnni | Isa::Avx512));
    levels
}

/// Lays blocks of x out: columns, shape and blocks, x, the blocks, and where they go.
pub type Pack = unsafe fn(usize, (&Shape, Blocks), &[f32], Range<usize>, *mut u8);

/// How x is laid out for a form: the bytes that `m` vectors of so many columns take, and what lays them out.
#[derive(Clone, Copy)]
pub struct Packing {
    /// `packed_bytes` of the form.
    pub bytes: fn(usize, usize) -> usize,
    /// `pack_x` of the form.
    pub pack: Pack,
}

/// The products of `n` rows with `m` vectors of `cols` columns, the groups of rows in two shares, of which the first has
/// `share`.
pub fn products<F: Form>(
    (form, isa): (F, Isa),
    packing: Packing,
    [m, n, cols]: [usize; 3],
    x: &[f32],
    share: usize,
) -> Vec<f32> {
    let shape = Shape {
        m,
        n,
        lda: cols,
        ldc: n,
        alpha: 1.0,
        beta: 0.0,
    };
    let blocks = Blocks::of(m, isa);
    let packed = Pages::zeroed((packing.bytes)(m, cols)).unwrap();
    let (team, mut own) = (Team::new(1), Own::default());
    let part = Part::new((0, 1), &team, &mut own, 0);
    let scratch = part.scratch.take::<u8>(scratch_bytes::<F>(blocks));
    let mut y = vec![f32::NAN; m * n];
    let all = 0..blocks.count();
    // SAFETY: the machine has the level, and there is as much memory as the functions say.
    unsafe {
        (packing.pack)(cols, (&shape, blocks), x, all, packed.pointer());
        let job = Job {
            form,
            shape: &shape,
            blocks,
            packed: packed.pointer(),
            scratch: scratch.as_mut_ptr(),
            y: y.as_mut_ptr(),
        };
        job.run(0..share);
        job.run(share..n.div_ceil(ROWS));
    }
    y
}

/// The products of rows with vectors of `cols` columns in f64, rounded at the end.
pub fn exact(rows: &[Vec<f32>], x: &[f32], cols: usize) -> Vec<f32> {
    let dot = |row: &[f32], x: &[f32]| -> f64 {
        let products = row.iter().zip(x);
        products.map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
    };
    x.chunks(cols)
        .flat_map(|x| rows.iter().map(move |row| dot(row, x) as f32))
        .collect()
}

/// Five panels, so that one is left when they are taken in fours and in pairs.
pub const ROWS_OF_ALL: usize = 5 * ROWS;

/// Three chunks of columns, the last one not whole where the format allows that.
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
        mlx: MlxLayout::contiguous(
            dtype,
            [ROWS_OF_ALL, cols].map(|n| n as u32),
            64,
            ScaleType::F16,
        ),
        ..weight::WeightLayout::contiguous(dtype, ROWS_OF_ALL, cols)
    };
    let bytes = weight.random(&mut Rng::new(5));
    laid_out(&Source::new(weight, &bytes))
}

/// The panels of a matrix.
pub fn laid_out(source: &Source) -> PackedMatrix {
    let shape = PackedShape::of(source).unwrap();
    let matrix = PackedMatrix::new(shape, Arc::new(Pages::zeroed(shape.bytes()).unwrap()), 0);
    // SAFETY: nobody else has it.
    unsafe { matrix.fill(source, 0..shape.count()) };
    matrix
}

/// The error of the products of a matrix with vectors, as a share of their power.
pub fn error(matrix: &PackedMatrix, x: &[f32], y: &[f32]) -> f64 {
    let (mut error, mut power) = (0.0, 0.0);
    let cols = matrix.shape.cols;
    let mut row = vec![0.0; cols];
    for n in 0..ROWS_OF_ALL {
        matrix.row(n, &mut row);
        for (x, y) in x.chunks(cols).zip(y.chunks(ROWS_OF_ALL)) {
            let products = row
                .iter()
                .zip(x)
                .map(|(&w, &x)| f64::from(w) * f64::from(x));
            let exact: f64 = products.sum();
            error += (exact - f64::from(y[n])).powi(2);
            power += exact * exact;
        }
    }
    error / power
}
