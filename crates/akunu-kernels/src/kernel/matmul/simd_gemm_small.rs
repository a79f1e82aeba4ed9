//! `simd_gemm_small_<format>`: as [`simd_gemm`](super::simd_gemm), with tiles of 8 rows.

use akunu_types::DType;

use super::product::{self, Product};
use super::simd_gemm::tiled;
use crate::chip::ChipConfig;
use crate::table::{Args, KernelRow, Launch};

/// Rows of a tile.
const TILE_M: u32 = 8;

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("simd_gemm_small_", ""),
        launch,
        work: |args, once| Product::of(args).work(once, TILE_M),
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..product::row(dtype, "simd_gemm_small")
    }
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    tiled(&Product::of(args), TILE_M)
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::matmul::shapes::{self, Binding, Shape};

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        shapes::cases(dtype, SHAPES, Binding::SINGLE)
    }

    /// A corner of one tile, a whole tile, one row and column more; tails of K.
    const SHAPES: &[Shape] = &[
        Shape::new(2, 3, 5),
        Shape::new(8, 64, 64).special(),
        Shape::new(9, 65, 95).gaps().factors(0.5, 1.0),
        Shape::new(7, 33, 290).scale(1e5),
    ];
}
