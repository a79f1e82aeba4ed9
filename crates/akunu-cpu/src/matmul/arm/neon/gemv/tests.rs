//! The functions of this folder against exact products, on the levels that the machine has.

use akunu_kernels::case::{Rng, nmse};
use akunu_kernels::weight::WeightLayout;
use akunu_program::Storage;
use akunu_types::DType;

use super::*;
use crate::isa::{Isa, Level};
use crate::matmul::activation::Values;
use crate::matmul::blocked_gemm::testing::exact;
use crate::matmul::gemv::Gemv;
use crate::panels::format::Scales;
use crate::panels::pack::{Source, pack};

const COLS: usize = 768;

/// Sixteen random rows: as a panel, and as numbers.
fn random_rows(dtype: DType, quant: Quant, rng: &mut Rng) -> (Vec<u8>, Vec<Vec<f32>>) {
    let weight = WeightLayout {
        storage: Storage::contiguous(dtype, [ROWS, COLS], 64),
        ..WeightLayout::contiguous(dtype, ROWS, COLS)
    };
    let bytes = weight.random(rng);
    let mut panel = vec![0; quant.panel_bytes(COLS / CELL)];
    pack(&Source::of(weight, &bytes).unwrap(), 0, &mut panel);
    let rows = (0..ROWS).map(|n| weight.row(&bytes, n)).collect();
    (panel, rows)
}

/// A nibble, a bit or a scale of another row or column would be far beyond the rounding of activations to 16 bits,
/// which is 1e-9 of the power. A last cell in the middle of a super-block is read too.
#[test]
fn a_panel_gives_the_products_of_its_rows() {
    let levels = Level::available().into_iter();
    for level in levels.filter(|level| level.isa() != Isa::Scalar) {
        let gemv = Gemv::of(level).unwrap();
        for dtype in DType::all() {
            let Some(quant) = Quant::of(dtype) else {
                continue;
            };
            let mut rng = Rng::new(11);
            let (panel, rows) = random_rows(dtype, quant, &mut rng);
            for (m, cells) in [(1, 24), (2, 24), (3, 19), (4, 24), (1, 3)] {
                let x: Vec<Vec<f32>> = (0..m).map(|_| rng.floats(cells * CELL, 1.0)).collect();
                let mut quantised: Vec<Activations> = Vec::new();
                quantised.resize_with(m, Default::default);
                for (into, x) in quantised.iter_mut().zip(&x) {
                    gemv.quantise(into, x, quant);
                }
                let dots = gemv.panel(quant, &panel, cells, &quantised);
                for (x, dots) in x.iter().zip(&dots) {
                    let error = nmse(dots, &exact(&rows, x, x.len()));
                    assert!(error < 1e-8, "{level}, {dtype}, {m} × {cells}: {error:e}");
                }
            }
        }
    }
}

/// The largest sums: an i16 that held one product more would overflow.
fn largest_sums_are_exact<D: Multiply, const BITS: u32>(smallest: i8, largest: i8) {
    for number in [smallest, largest] {
        for byte in [-127, 127] {
            let mut x = Activations::default();
            let quant = Quant {
                bits: 4,
                offset: 0,
                table: None,
                scales: Scales::Plain,
            };
            quantise(&mut x, &[1.0; CELL], quant);
            x.values[0] = Values([byte; 2 * CELL]);
            let expected = HALF as i32 * i32::from(number) * 257 * i32::from(byte);
            for half in 0..2 {
                // SAFETY: `reach`: there is one cell; the callers looked for the instructions.
                let ends = unsafe {
                    let dots = half_dots::<D, BITS>(&[vdupq_n_s8(number); 8], &x, (0, half));
                    [vminvq_s32(dots), vmaxvq_s32(dots)]
                };
                assert_eq!(ends, [expected; 2], "{BITS} bits, {number}");
            }
        }
    }
}

#[test]
fn no_sum_of_products_overflows() {
    largest_sums_are_exact::<Smull, 6>(0, 63);
    largest_sums_are_exact::<Smull, 8>(-128, 127);
    if Isa::Dotprod.is_available() {
        largest_sums_are_exact::<Sdot, 6>(0, 63);
        largest_sums_are_exact::<Sdot, 8>(-128, 127);
    }
}
