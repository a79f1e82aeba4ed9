//! `layernorm_f32`: `y[r][i] = (x[r][i] - mean) / sqrt(variance + eps) * weight[i] + bias[i]`.
//!
//! Mean and variance of each row; the variance is the mean square distance from the mean. One
//! threadgroup a row.

use akunu_types::params::LayerNormParams;

use super::launch_rows;
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: LayerNormParams at 4) {
        x: read f32 = [p.n_rows, p.dim],
        weight: read f32 = [p.dim],
        bias: read f32 = [p.dim],
        y: write f32 = [p.n_rows, p.dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("layernorm_f32", ""),
    family: Family::Norm,
    source: "layernorm",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: LayerNormParams = args.params();
    launch_rows(p.n_rows, p.dim, chip)
}

fn twin(t: &mut Twin) {
    let p: LayerNormParams = t.params();
    let Slices { x, weight, bias, y } = Slices::of(t);
    let dim = p.dim as usize;
    let rows = y.chunks_exact_mut(dim);
    for (y, x) in rows.zip(x.chunks_exact(dim)) {
        let sum: f64 = x.iter().map(|&v| f64::from(v)).sum();
        let mean = (sum / dim as f64) as f32;
        let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / dim as f32;
        let inverse = 1.0 / (variance + p.eps).sqrt();
        for (i, y) in y.iter_mut().enumerate() {
            *y = (x[i] - mean) * inverse * weight[i] + bias[i];
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::norm::cases::SHAPES;

    pub fn all() -> Vec<Case> {
        let shapes = SHAPES.into_iter();
        let mut cases: Vec<Case> = shapes
            .map(|(dim, n_rows, scale)| case(dim, n_rows, scale, 0.0))
            .collect();
        cases.push(case(384, 2, 1.0, 1000.0));
        cases
    }

    /// A mean far from zero costs digits before the kernel begins: at mean 1000 and spread 1 a sum of f32 has a mean that is
    /// off by about 1e-4, which is 1e-8 squared; the twin sums in f64. Without it, as the other norms.
    fn case(dim: u32, n_rows: u32, scale: f32, mean: f32) -> Case {
        let mut rng = Rng::new(u64::from(dim));
        let (cols, rows) = (dim as usize, n_rows as usize);
        let params = LayerNormParams {
            dim,
            eps: 1e-5,
            n_rows,
            ..Default::default()
        };
        let label = format!("dim {dim}, rows {n_rows}, scale {scale}, mean {mean}");
        let nmse = if mean == 0.0 {
            crate::kernel::norm::cases::NMSE
        } else {
            1e-8
        };
        let x: Vec<f32> = rng
            .floats(rows * cols, scale)
            .iter()
            .map(|v| v + mean)
            .collect();
        Case::new(label, &params, nmse)
            .bind(&x)
            .bind(&rng.floats(cols, 1.0))
            .bind(&rng.floats(cols, 1.0))
            .bind(&vec![f32::NAN; rows * cols])
    }
}
