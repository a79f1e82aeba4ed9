//! `rmsnorm_residual_f32`: `h[r] += x[r] / sqrt(mean(x[r]²) + eps) * weight`.
//!
//! Gemma's norm after attention and after the feed-forward, and the residual connection that
//! follows it. One threadgroup a row.

use akunu_types::SharedStruct;
use akunu_types::params::RMSNormParams;

use super::rmsnorm::{inverse_rms, required};
use super::{NMSE, SHAPES, launch_rmsnorm};
use crate::case::{Case, Rng};
use crate::cost::once;
use crate::table::{Element, Family, KernelRow, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("rmsnorm_residual_f32", ""),
    dtype: None,
    family: Family::Norm,
    source: "rmsnorm_residual",
    bindings: &[
        read(0, "x", Element::F32),
        read(1, "weight", Element::F32),
        read_write(2, "h", Element::F32),
    ],
    params_index: 3,
    params: RMSNormParams::LAYOUT,
    constants: &[],
    launch: launch_rmsnorm,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

fn twin(t: &mut Twin) {
    let p: RMSNormParams = t.params();
    let (x, weight) = (t.read::<f32>(0), t.read::<f32>(1));
    let dim = p.dim as usize;
    let rows = t.write::<f32>(2).chunks_exact_mut(dim);
    for (h, x) in rows.zip(x.chunks_exact(dim)) {
        let inverse = inverse_rms(x, p.eps);
        for (i, h) in h.iter_mut().enumerate() {
            *h += x[i] * inverse * weight[i];
        }
    }
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
        .bind(&rng.floats(cols, 1.0))
        .bind(&rng.floats(rows * cols, 1.0))
}
