//! `gemv_batched_<format>`: as [`gemv`](super::gemv), for 2 to 16 vectors at once.
//!
//! The weights are read once for up to 16 vectors; more vectors take further passes.

use akunu_types::DType;

use super::product::{self, Product};
use super::{allowed_simd_groups, gemv_launch};
use crate::chip::ChipConfig;
use crate::constant::Constant;
use crate::table::{Args, KernelRow, Launch};

/// Outputs of a SIMD group, for each vector.
const ROWS: u32 = 2;
const SIMD_GROUPS: u32 = 8;
/// Vectors that share one reading of the weights.
pub const MAX_BATCH: u32 = 16;

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_batched_", ""),
        constants: constants(dtype),
        launch,
        work: |args, once| Product::of(args).work(once, MAX_BATCH),
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..product::row(dtype, "gemv_batched")
    }
}

fn constants(dtype: DType) -> &'static [Constant] {
    if dtype.mlx_bits().is_some() {
        &[
            Constant::GemmK,
            Constant::BatchM,
            Constant::GroupSize,
            Constant::ScaleType,
        ]
    } else {
        &[Constant::GemmK, Constant::BatchM]
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p = Product::of(args);
    let simd_groups = allowed_simd_groups(SIMD_GROUPS, chip);
    gemv_launch(p.n, ROWS, simd_groups, p.m.div_ceil(MAX_BATCH))
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::matmul::shapes::{self, Binding, Shape};

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        shapes::cases(
            dtype,
            SHAPES,
            Binding {
                inputs: 1,
                batch: true,
            },
        )
    }

    /// Every kind of batch: one, a few, full, one more than full.
    const SHAPES: &[Shape] = &[
        Shape::new(1, 3, 9),
        Shape::new(2, 17, 576).special(),
        Shape::new(5, 15, 70).gaps().factors(0.5, 1.0),
        Shape::new(16, 16, 513).scale(1e3),
        Shape::new(17, 5, 256).special(),
    ];
}
