//! What the tests of all micro-kernels share.

pub mod quantised;

use std::ops::Range;

use super::{BlockedGemm, Blocks, MicroKernel, scratch_bytes};
use crate::isa::{Isa, Level};
use crate::matmul::shape::Shape;
use crate::matmul::vectors::Vectors;
use crate::memory::Pages;
use crate::panels::format::ROWS;
use crate::part::{Own, Part, Team};

/// The levels that multiply in these ways.
pub fn levels() -> Vec<Level> {
    let mut levels = Level::available();
    levels.retain(|level| !matches!(level.isa(), Isa::Scalar | Isa::Amx));
    levels
}

/// Lays blocks of x out: how x is cut, x, the blocks, and where they go.
pub type Pack = unsafe fn(Blocks, &Vectors, Range<usize>, *mut u8);

/// How x is laid out for a micro-kernel: the bytes that `m` vectors of so many columns take, and what lays them out.
#[derive(Clone, Copy)]
pub struct Packing {
    /// `packed_bytes` of the gemm.
    pub bytes: fn(usize, usize) -> usize,
    /// `pack_x` of the gemm.
    pub pack: Pack,
}

/// The products of `n` rows with `m` vectors of `cols` columns, the groups of rows in two shares, of which the first has
/// `share`.
pub fn products<F: MicroKernel>(
    (kernel, level): (F, Level),
    packing: Packing,
    [m, n, cols]: [usize; 3],
    x: &[f32],
    share: usize,
) -> Vec<f32> {
    let shape = Shape {
        m,
        n,
        ldc: n,
        alpha: 1.0,
        beta: 0.0,
    };
    let blocks = Blocks::of(m, level.isa());
    let x = Vectors::rows(x, m, cols, cols);
    let packed = Pages::zeroed((packing.bytes)(m, cols)).unwrap();
    let (team, mut own) = (Team::new(1), Own::default());
    let part = Part::new((0, 1), &team, &mut own, 0);
    let scratch = part.scratch.take::<u8>(scratch_bytes::<F>(blocks));
    let mut y = vec![f32::NAN; m * n];
    let all = 0..blocks.count();
    // SAFETY: the machine has the level, and there is as much memory as the functions say.
    unsafe {
        (packing.pack)(blocks, &x, all, packed.pointer());
        let job = BlockedGemm {
            kernel,
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
