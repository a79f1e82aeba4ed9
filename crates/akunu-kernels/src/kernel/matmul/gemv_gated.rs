//! `gemv_<format>_silu` and `gemv_<format>_gelu`: the gate of a feed-forward network fused with its down
//! projection, `y[m][n] = alpha * Σ_k weight[n][k] * act(gate[m][k]) * up[m][k] + beta * y[m][n]`.
//!
//! `silu(x) = x / (1 + exp(-x))`; `gelu` is the tanh form, as Gemma uses it.

use akunu_types::DType;
use akunu_types::params::GEMMParams;

use super::product::{self, Product};
use super::{allowed_simd_groups, gemv_launch, gemv_simd_groups};
use crate::chip::ChipConfig;
use crate::kernel::activation::{gelu, silu};
use crate::table::{Args, KernelRow, Launch, Weight, buffers};
use crate::twin::Twin;

/// Outputs of a SIMD group.
const ROWS: u32 = 4;

buffers! {
    pub struct Buffers, Slices(|args| p = Product::of(args), GEMMParams at 4) {
        gate: read f32 = p.x_len(),
        up: read f32 = p.x_len(),
        weight: read Weight = p.weight.bytes(),
        y: change f32 = p.y_len(),
    }
}

/// The row of `gemv_<format>_silu`.
pub fn silu_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_", "_silu"),
        twin: |t| twin(t, silu),
        ..gated_row(dtype, "gemv_silu")
    }
}

/// The row of `gemv_<format>_gelu`.
pub fn gelu_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_", "_gelu"),
        twin: |t| twin(t, gelu),
        ..gated_row(dtype, "gemv_gelu")
    }
}

fn gated_row(dtype: DType, source: &'static str) -> KernelRow {
    KernelRow {
        launch,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..product::row_with::<Buffers<()>>(dtype, source)
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p = Product::of(args);
    let simd_groups = allowed_simd_groups(gemv_simd_groups(p.k), chip);
    gemv_launch(p.n, ROWS, simd_groups, p.m)
}

fn twin(t: &mut Twin, act: fn(f32) -> f32) {
    let product = Product::of(&t.args());
    let Slices {
        gate,
        up,
        weight,
        y,
    } = Slices::of(t);
    let x: Vec<f32> = gate.iter().zip(up).map(|(&g, &u)| act(g) * u).collect();
    product.compute(&x, weight, y);
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::matmul::shapes::{self, Shape};

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        shapes::cases(
            dtype,
            SHAPES,
            shapes::Binding {
                inputs: 2,
                batch: false,
            },
        )
    }

    /// Tails of n and K, K beyond the 1024 values that a threadgroup gates at once, gates large enough for
    /// `exp` to overflow.
    const SHAPES: &[Shape] = &[
        Shape::new(3, 1, 3),
        Shape::new(1, 17, 576).special(),
        Shape::new(2, 15, 1030).gaps().factors(0.5, 1.0),
        Shape::new(1, 33, 2052).scale(100.0),
        Shape::new(1, 4, 1024).scale(1e-4).special(),
    ];
}
