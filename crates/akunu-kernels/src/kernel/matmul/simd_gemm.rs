//! `simd_gemm_<format>`: as [`gemv`](super::gemv), for many vectors, by 8×8 matrices of SIMD groups.
//!
//! A threadgroup computes a tile of 32 rows and 64 columns; the weights are read once for each 32 rows.

use akunu_types::DType;

use super::product::{self, Product};
use crate::chip::ChipConfig;
use crate::table::{Args, KernelRow, Launch};

/// Columns of a tile.
pub(super) const TILE_N: u32 = 64;
/// Threads of a threadgroup.
pub(super) const THREADS: u32 = 128;
/// Rows of a tile.
const TILE_M: u32 = 32;

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("simd_gemm_", ""),
        launch,
        work: |args, once| Product::of(args).work(once, TILE_M),
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..product::row(dtype, "simd_gemm")
    }
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p = Product::of(args);
    tiled(&p, TILE_M)
}

/// One threadgroup for each tile.
pub(super) fn tiled(p: &Product, tile_m: u32) -> Launch {
    Launch::new(
        [p.n.div_ceil(TILE_N), p.m.div_ceil(tile_m), 1],
        [THREADS, 1, 1],
    )
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::matmul::shapes::{self, Binding, Shape};

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        shapes::cases(dtype, SHAPES, Binding::SINGLE)
    }

    /// A corner of one tile, whole tiles, one row and column more; K below, at and beyond a step of 32.
    const SHAPES: &[Shape] = &[
        Shape::new(3, 1, 7),
        Shape::new(32, 64, 64).special(),
        Shape::new(33, 65, 33).factors(0.5, 1.0),
        Shape::new(9, 70, 300).gaps().scale(1e5),
        Shape::new(40, 24, 96).scale(1e-4).gaps().special(),
    ];
}
