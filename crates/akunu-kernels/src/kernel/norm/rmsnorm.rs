//! `rmsnorm_f32`: `y[r][i] = x[r][i] / sqrt(mean(x[r]²) + eps) * weight[i]`.
//!
//! One threadgroup a row.

use akunu_types::params::RMSNormParams;

use super::launch_rmsnorm;
use crate::table::{Family, KernelRow, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: RMSNormParams at 3) {
        x: read f32 = [p.n_rows, p.dim],
        weight: read f32 = [p.dim],
        y: write f32 = [p.n_rows, p.dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("rmsnorm_f32", ""),
    family: Family::Norm,
    source: "rmsnorm",
    launch: launch_rmsnorm,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn twin(t: &mut Twin) {
    let p: RMSNormParams = t.params();
    let Slices { x, weight, y } = Slices::of(t);
    let dim = p.dim as usize;
    let rows = y.chunks_exact_mut(dim);
    for (y, x) in rows.zip(x.chunks_exact(dim)) {
        rmsnorm(x, weight, p.eps, y);
    }
}

/// The formula for one row.
pub fn rmsnorm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    let inverse = inverse_rms(x, eps);
    for (i, y) in y.iter_mut().enumerate() {
        *y = x[i] * inverse * weight[i];
    }
}

/// `1 / sqrt(mean(x²) + eps)`.
pub fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    let square: f32 = x.iter().map(|v| v * v).sum();
    1.0 / (square / x.len() as f32 + eps).sqrt()
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
            eps: 1e-5,
            n_rows,
            ..Default::default()
        };
        let label = format!("dim {dim}, rows {n_rows}, scale {scale}");
        Case::new(label, &params, NMSE)
            .bind(&rng.floats(rows * cols, scale))
            .bind(&rng.floats(cols, 1.0))
            .bind(&vec![f32::NAN; rows * cols])
    }
}
