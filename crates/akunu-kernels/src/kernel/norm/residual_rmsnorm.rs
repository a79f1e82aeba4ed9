//! `residual_rmsnorm_f32`: `h[r] += x[r]`, then `y[r] = h[r] / sqrt(mean(h[r]²) + eps) * weight`.
//!
//! The residual connection and the norm that follows it. One threadgroup a row.

use akunu_types::SharedStruct;
use akunu_types::params::RMSNormParams;

use super::rmsnorm::rmsnorm;
use super::{NMSE, SHAPES, launch_rmsnorm};
use crate::case::{Case, Rng};
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, read, read_write, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("residual_rmsnorm_f32", ""),
    dtype: None,
    family: Family::Norm,
    source: "residual_rmsnorm",
    bindings: &[
        read_write(0, "h", Element::F32),
        read(1, "x", Element::F32),
        read(2, "weight", Element::F32),
        write(3, "y", Element::F32),
    ],
    params_index: 4,
    params: RMSNormParams::LAYOUT,
    constants: &[],
    launch: launch_rmsnorm,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

fn required(args: &Args) -> Vec<usize> {
    let p: RMSNormParams = args.params();
    let matrix = bytes::<f32>(&[p.n_rows, p.dim]);
    vec![matrix, matrix, bytes::<f32>(&[p.dim]), matrix]
}

fn twin(t: &mut Twin) {
    let p: RMSNormParams = t.params();
    let (x, weight) = (t.read::<f32>(1), t.read::<f32>(2));
    let mut h = t.copy::<f32>(0);
    for (h, x) in h.iter_mut().zip(x) {
        *h += x;
    }
    let dim = p.dim as usize;
    let rows = t.write::<f32>(3).chunks_exact_mut(dim);
    for (y, h) in rows.zip(h.chunks_exact(dim)) {
        rmsnorm(h, weight, p.eps, y);
    }
    t.store(0, &h);
}

fn cases() -> Vec<Case> {
    let shapes = SHAPES.into_iter();
    shapes
        .map(|(dim, n_rows, scale)| case(dim, n_rows, scale))
        .collect()
}

fn case(dim: u32, n_rows: u32, scale: f32) -> Case {
    let mut rng = Rng::new(u64::from(dim));
    let (cols, rows) = (dim as usize, n_rows as usize);
    let params = RMSNormParams {
        dim,
        eps: 1e-6,
        n_rows,
        ..Default::default()
    };
    let label = format!("dim {dim}, rows {n_rows}, scale {scale}");
    Case::new(label, &params, NMSE)
        .bind(&rng.floats(rows * cols, scale))
        .bind(&rng.floats(rows * cols, scale))
        .bind(&rng.floats(cols, 1.0))
        .bind(&vec![f32::NAN; rows * cols])
}
