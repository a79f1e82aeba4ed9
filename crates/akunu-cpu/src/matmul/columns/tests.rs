use akunu_kernels::case::Rng;
use akunu_kernels::weight;
use akunu_types::DType;

use super::*;
use crate::matmul::blocked::{Job, scratch_bytes};
use crate::memory::Pages;
use crate::part::{Own, Part, Team};

/// Rows and columns that are no multiples of anything: a last group, a last chunk and a last vector that are not whole.
const N: usize = 53;
const COLS: usize = CHUNK + 77;

/// A number of another row or column would give another product; what f32 rounds is 1e-14 of the power.
#[test]
fn columns_give_the_products_of_their_rows() {
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let weight = weight::WeightLayout::contiguous(dtype, N, COLS);
        let bytes = weight.random(&mut Rng::new(3));
        let rows = Rows::of(&weight, &bytes).unwrap();
        let levels = Isa::available().into_iter();
        for isa in levels.filter(|isa| matches!(isa, Isa::Avx2 | Isa::AvxVnni | Isa::Avx512)) {
            for m in [9, 12, 17, 29] {
                let x = Rng::new(4).floats(m * COLS, 1.0);
                let y = products(&rows, isa, &x, m);
                let (mut error, mut power) = (0.0, 0.0);
                for n in 0..N {
                    let row = weight.row(&bytes, n);
                    for (x, y) in x.chunks(COLS).zip(y.chunks(N)) {
                        let products = row
                            .iter()
                            .zip(x)
                            .map(|(&w, &x)| f64::from(w) * f64::from(x));
                        let exact: f64 = products.sum();
                        error += (exact - f64::from(y[n])).powi(2);
                        power += exact * exact;
                    }
                }
                let error = error / power;
                assert!(error < 1e-12, "{isa}, {dtype}, {m} vectors: {error:e}");
            }
        }
    }
}

/// The products, the groups of rows in two shares.
fn products(rows: &Rows, isa: Isa, x: &[f32], m: usize) -> Vec<f32> {
    let shape = Shape {
        m,
        n: N,
        lda: COLS,
        ldc: N,
        alpha: 1.0,
        beta: 0.0,
    };
    let blocks = Blocks::of(m, isa);
    let packed = Pages::zeroed(packed_bytes(m, COLS)).unwrap();
    let (team, mut own) = (Team::new(1), Own::default());
    let part = Part::new((0, 1), &team, &mut own, 0);
    let scratch = part.scratch.take::<u8>(scratch_bytes::<Columns>(blocks));
    let mut y = vec![f32::NAN; m * N];
    // SAFETY: the machine has the level, and there is as much memory as the functions say.
    unsafe {
        pack_x(
            COLS,
            (&shape, blocks),
            x,
            0..blocks.count(),
            packed.pointer(),
        );
        let job = Job {
            form: Columns::of(rows, isa),
            shape: &shape,
            blocks,
            packed: packed.pointer(),
            scratch: scratch.as_mut_ptr(),
            y: y.as_mut_ptr(),
        };
        job.run(0..1);
        job.run(1..rows.groups());
    }
    y
}
