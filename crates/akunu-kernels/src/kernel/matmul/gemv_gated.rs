//! `gemv_<format>_silu` and `gemv_<format>_gelu`: the gate of a feed-forward network fused with its down
//! projection, `y[m][n] = alpha * Σ_k weight[n][k] * act(gate[m][k]) * up[m][k] + beta * y[m][n]`.
//!
//! `silu(x) = x / (1 + exp(-x))`; `gelu` is the tanh form, as Gemma uses it.

use akunu_types::DType;

use super::product::{self, Product};
use super::shapes::{self, Shape};
use super::{gemv_launch, gemv_simd_groups};
use crate::chip::ChipConfig;
use crate::kernel::activation::{gelu, silu};
use crate::table::{Args, Binding, Element, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// Outputs of a SIMD group.
const ROWS: u32 = 4;

const BINDINGS: &[Binding] = &[
    read(0, "gate", Element::F32),
    read(1, "up", Element::F32),
    read(2, "weight", Element::Weight),
    read_write(3, "y", Element::F32),
];

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
        bindings: BINDINGS,
        params_index: 4,
        launch,
        required,
        cases: |dtype| {
            shapes::cases(
                dtype,
                SHAPES,
                shapes::Binding {
                    inputs: 2,
                    batch: false,
                },
            )
        },
        ..product::row(dtype, source)
    }
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p = Product::of(args);
    gemv_launch(p.n, ROWS, gemv_simd_groups(p.k), p.m)
}

fn required(args: &Args) -> Vec<usize> {
    let [x, weight, y] = Product::of(args).bytes();
    vec![x, x, weight, y]
}

fn twin(t: &mut Twin, act: fn(f32) -> f32) {
    let product = Product::of(&t.args());
    let (gate, up, weight) = (t.read::<f32>(0), t.read::<f32>(1), t.read::<u8>(2));
    let x: Vec<f32> = gate.iter().zip(up).map(|(&g, &u)| act(g) * u).collect();
    product.compute(&x, weight, t.write::<f32>(3));
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
