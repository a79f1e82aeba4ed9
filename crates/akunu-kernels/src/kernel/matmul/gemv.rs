//! `gemv_<format>`: `y[m][n] = alpha * Σ_k weight[n][k] * x[m][k] + beta * y[m][n]`.
//!
//! A SIMD group computes four outputs: it reads x once for all of them. The weights are read once for
//! each m.

use akunu_types::DType;

use super::product::{self, Product};
use super::{allowed_simd_groups, gemv_launch, gemv_simd_groups};
use crate::chip::ChipConfig;
use crate::table::{Args, KernelRow, Launch};

/// Outputs of a SIMD group.
const ROWS: u32 = 4;

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_", ""),
        launch,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..product::row(dtype, "gemv")
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p = Product::of(args);
    let simd_groups = allowed_simd_groups(gemv_simd_groups(p.k), chip);
    gemv_launch(p.n, ROWS, simd_groups, p.m)
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::matmul::shapes::{self, Binding, Shape};

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        shapes::cases(dtype, SHAPES, Binding::SINGLE)
    }

    /// One output; one more and one less than a SIMD group's and a threadgroup's; K below, at and beyond
    /// a pair of runs, a SIMD group's step and the threshold of more SIMD groups.
    const SHAPES: &[Shape] = &[
        Shape::new(3, 1, 1),
        Shape::new(1, 5, 17).special(),
        Shape::new(1, 15, 100).scale(1e4),
        Shape::new(1, 17, 576).factors(0.5, 2.0),
        Shape::new(3, 19, 514).gaps().factors(1.0, 1.0).special(),
        Shape::new(1, 33, 1030).scale(1e-4),
        Shape::new(1, 33, 2056).special(),
    ];
}
