//! `rmsnorm_residual_f32`: `h[r] += x[r] / sqrt(mean(x[r]²) + eps) * weight`.
//!
//! Gemma's norm after attention and after the feed-forward, and the residual connection that
//! follows it. One threadgroup a row.

use akunu_types::params::RMSNormParams;

use super::launch_rmsnorm;
use super::rmsnorm::inverse_rms;
use crate::table::{Family, KernelRow, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: RMSNormParams at 3) {
        x: read f32 = [p.n_rows, p.dim],
        weight: read f32 = [p.dim],
        h: change f32 = [p.n_rows, p.dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("rmsnorm_residual_f32", ""),
    family: Family::Norm,
    source: "rmsnorm_residual",
    launch: launch_rmsnorm,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn twin(t: &mut Twin) {
    let p: RMSNormParams = t.params();
    let Slices { x, weight, h } = Slices::of(t);
    let dim = p.dim as usize;
    let rows = h.chunks_exact_mut(dim);
    for (h, x) in rows.zip(x.chunks_exact(dim)) {
        let inverse = inverse_rms(x, p.eps);
        for (i, h) in h.iter_mut().enumerate() {
            *h += x[i] * inverse * weight[i];
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::norm::cases::{NMSE, SHAPES};

    pub fn all() -> Vec<Case> {
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
}
