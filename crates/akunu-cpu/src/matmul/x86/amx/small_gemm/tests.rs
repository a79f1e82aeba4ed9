use akunu_kernels::case::Rng;
use akunu_types::DType;
use half::bf16;

use super::*;
use crate::isa::Isa;
use crate::matmul::blocked_gemm::testing::quantised::{ROWS_OF_ALL, cols, error, few, matrix};
use crate::matmul::vectors::Vectors;
use crate::memory::Pages;
use crate::panels::format::Quant;
use crate::part::{Own, Part, Team};

/// The formats that are multiplied in this way.
fn formats(digits: Digits) -> impl Iterator<Item = DType> {
    DType::all().filter(move |dtype| Quant::of(*dtype).and_then(Digits::of) == Some(digits))
}

/// Whether this machine has tiles; else there is nothing to test.
fn has_tiles() -> bool {
    Isa::available().contains(&Isa::Amx)
}

/// The products with `m` vectors, the panels in two shares, of which the first has `share`.
fn many(matrix: &PackedMatrix, x: &[f32], m: usize, share: usize) -> Vec<f32> {
    let (quant, n_cells) = (matrix.shape.quant, matrix.shape.cells);
    let shape = Shape {
        m,
        n: ROWS_OF_ALL,
        ldc: ROWS_OF_ALL,
        alpha: 1.0,
        beta: 0.0,
    };
    let packed = Pages::zeroed(packed_bytes(m, n_cells)).unwrap();
    let (team, mut own) = (Team::new(1), Own::default());
    let part = Part::new((0, 1), &team, &mut own, 0);
    let scratch = part.scratch.take::<u8>(SCRATCH).as_mut_ptr();
    let mut y = vec![f32::NAN; m * ROWS_OF_ALL];
    let digits = Digits::of(quant).unwrap();
    // SAFETY: the machine has tiles, and there is as much memory as the functions say.
    unsafe {
        let all = 0..cells(m, n_cells);
        let x = Vectors::rows(x, m, matrix.shape.cols, matrix.shape.cols);
        pack_x((digits, quant), &x, all, packed.pointer());
        let places = (y.as_mut_ptr(), scratch);
        multiply(matrix, &shape, packed.pointer(), places, 0..share);
        let rest = share..matrix.shape.count();
        multiply(matrix, &shape, packed.pointer(), places, rest);
    }
    y
}

/// With bytes a row of a batch gets what it gets alone, however many vectors there are and however the panels are shared out.
#[test]
fn bytes_give_the_bits_that_few_vectors_get() {
    if !has_tiles() {
        return;
    }
    assert!(formats(Digits::Bytes).eq([DType::Q8_0, DType::MLX_Q8]));
    for dtype in formats(Digits::Bytes) {
        let matrix = matrix(dtype);
        for (m, share) in [(9, 0), (11, 1), (16, 5), (17, 2), (32, 3)] {
            let x = Rng::new(7).floats(m * cols(dtype), 1.0);
            let many = many(&matrix, &x, m, share);
            assert!(
                many == few(Isa::Avx512.level().unwrap(), &matrix, &x, m),
                "{dtype}, {m}"
            );
        }
    }
}

/// The products are those of the vectors rounded to bf16, up to the last bits of f32: a number of another row or column, or a weight
/// that is not exact, would be far beyond that. Rounding costs 3e-6.
#[test]
fn floats_give_the_products_of_rounded_vectors() {
    if !has_tiles() {
        return;
    }
    assert!(formats(Digits::Floats).count() >= 8);
    for dtype in formats(Digits::Floats) {
        let matrix = matrix(dtype);
        for (m, share) in [(9, 0), (11, 1), (16, 5), (17, 2), (32, 3)] {
            let x = Rng::new(7).floats(m * cols(dtype), 1.0);
            let rounded: Vec<f32> = x.iter().map(|x| bf16::from_f32(*x).to_f32()).collect();
            let many = many(&matrix, &x, m, share);
            let of_rounded = error(&matrix, &rounded, &many);
            assert!(of_rounded < 1e-12, "{dtype}, {m}: {of_rounded:e}");
            let of_all = error(&matrix, &x, &many);
            assert!(of_all < 5e-6, "{dtype}, {m}: {of_all:e}");
        }
    }
}

/// What is no number is not taken for one: NaN and infinity make no finite products, and touch no other vector.
#[test]
fn what_is_not_finite_stays_so() {
    if !has_tiles() {
        return;
    }
    let m = 9;
    for dtype in [DType::Q4_0, DType::Q4_1, DType::Q8_0] {
        let matrix = matrix(dtype);
        for wrong in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = Rng::new(7).floats(m * matrix.shape.cols, 1.0);
            x[matrix.shape.cols / 2] = wrong;
            let y = many(&matrix, &x, m, 2);
            let (first, others) = y.split_at(ROWS_OF_ALL);
            assert!(first.iter().all(|y| !y.is_finite()), "{dtype}, {wrong}");
            assert!(others.iter().all(|y| y.is_finite()), "{dtype}, {wrong}");
        }
    }
}

/// Each cell is in one run, and runs begin where the cells of a panel can be read from.
#[test]
fn runs_are_all_cells_and_begin_with_super_blocks() {
    for n in 1..100 {
        let runs: Vec<Range<usize>> = runs(n).collect();
        let all: Vec<usize> = runs.iter().cloned().flatten().collect();
        assert!(all.into_iter().eq(0..n), "{n}: {runs:?}");
        let starts = runs.iter().map(|run| run.start);
        assert!(starts.into_iter().all(|start| start % SUPER == 0), "{n}");
        assert!(runs.iter().all(|run| run.len() < 2 * SUPER), "{n}");
    }
}
