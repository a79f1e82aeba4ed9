//! `rmsnorm_f32`: `y[r][i] = x[r][i] / sqrt(mean(x[r]²) + eps) * weight[i]`.
//!
//! One threadgroup a row.

use akunu_types::SharedStruct;
use akunu_types::params::RMSNormParams;

use super::norm_threads;
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("rmsnorm_f32", ""),
    dtype: None,
    family: Family::Norm,
    source: "rmsnorm",
    bindings: &[
        read(0, "x", Element::F32),
        read(1, "weight", Element::F32),
        write(2, "y", Element::F32),
    ],
    params_index: 3,
    params: RMSNormParams::LAYOUT,
    constants: &[],
    launch,
    required,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: RMSNormParams = args.params();
    Launch::new([p.n_rows, 1, 1], [norm_threads(p.dim, chip), 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: RMSNormParams = args.params();
    let (rows, dim) = (p.n_rows as usize, p.dim as usize);
    vec![rows * dim * 4, dim * 4, rows * dim * 4]
}

fn twin(t: &mut Twin) {
    let p: RMSNormParams = t.params();
    let (x, weight) = (t.read::<f32>(0), t.read::<f32>(1));
    let dim = p.dim as usize;
    let rows = t
        .write::<f32>(2)
        .chunks_exact_mut(dim)
        .zip(x.chunks_exact(dim));
    for (y, x) in rows {
        rmsnorm(x, weight, p.eps, y);
    }
}

/// The formula for one row.
pub fn rmsnorm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    let square: f32 = x.iter().map(|v| v * v).sum();
    let inverse = 1.0 / (square / x.len() as f32 + eps).sqrt();
    for (i, y) in y.iter_mut().enumerate() {
        *y = x[i] * inverse * weight[i];
    }
}

fn cases() -> Vec<Case> {
    let shapes: [(u32, u32, f32); 8] = [
        (1, 1, 1.0),
        (31, 2, 1.0),
        (32, 1, 1e-4),
        (33, 3, 1.0),
        (576, 2, 100.0),
        (640, 1, 1.0),
        (1000, 2, 1e4),
        (4096, 1, 1.0),
    ];
    shapes
        .into_iter()
        .map(|(dim, n_rows, scale)| case(dim, n_rows, scale))
        .collect()
}

/// f32 in, f32 out: only the order of the sum differs, about 1e-7 relative, 1e-14 squared.
fn case(dim: u32, n_rows: u32, scale: f32) -> Case {
    let mut rng = Rng::new(u64::from(dim));
    let (cols, rows) = (dim as usize, n_rows as usize);
    let params = RMSNormParams {
        dim,
        eps: 1e-5,
        n_rows,
        ..Default::default()
    };
    Case::new(
        format!("dim {dim}, rows {n_rows}, scale {scale}"),
        &params,
        1e-12,
    )
    .bind(&rng.floats(rows * cols, scale))
    .bind(&rng.floats(cols, 1.0))
    .bind(&vec![0f32; rows * cols])
}
