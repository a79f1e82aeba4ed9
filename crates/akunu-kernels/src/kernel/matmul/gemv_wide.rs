//! `gemv_wide_<format>`: as [`gemv`](super::gemv), for outputs as wide as a vocabulary.
//!
//! A SIMD group computes eight outputs, a threadgroup 64: there are enough rows to fill the GPU, and x
//! is read half as often.

use akunu_types::DType;

use super::product::{self, Product};
use super::{allowed_simd_groups, gemv_launch};
use crate::chip::ChipConfig;
use crate::table::{Args, KernelRow, Launch};

/// Outputs of a SIMD group.
const ROWS: u32 = 8;
const SIMD_GROUPS: u32 = 8;

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_wide_", ""),
        launch,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..product::row(dtype, "gemv_wide")
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p = Product::of(args);
    let simd_groups = allowed_simd_groups(SIMD_GROUPS, chip);
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

    /// One output, one less and one more than a threadgroup's, tails of K.
    const SHAPES: &[Shape] = &[
        Shape::new(3, 1, 33),
        Shape::new(1, 63, 576).special(),
        Shape::new(1, 65, 301).factors(2.0, -1.0),
        Shape::new(2, 130, 64).gaps().scale(1e3),
    ];
}
