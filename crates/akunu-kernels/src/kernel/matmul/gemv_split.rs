//! `gemv_split_<format>`: as [`gemv`](super::gemv), for a GPU with so many SIMD groups under way that one for each four
//! outputs does not fill it.
//!
//! The SIMD groups of a threadgroup compute the same four outputs; of every n steps of 1024 values a SIMD group of n takes
//! one, a span of 32 a lane, and the sums are added in threadgroup memory. x begins at a multiple of 16 bytes.

use akunu_types::DType;

use super::product::{self, Product};
use super::shapes::{self, Binding, Shape};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::table::{Args, KernelRow, Launch};

/// Outputs of a threadgroup.
pub const ROWS: u32 = 4;
/// Values that a SIMD group takes in one step.
const STEP: u32 = 1024;
/// SIMD groups that keep a core busy while others wait for memory.
const SIMD_GROUPS_A_CORE: u32 = 32;
/// Most SIMD groups of a threadgroup: those whose x has room in threadgroup memory.
const MAX_SIMD_GROUPS: u32 = 4;
/// Where x must begin, in bytes.
pub const X_ALIGNMENT: usize = 16;

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("gemv_split_", ""),
        launch,
        cases: |dtype| {
            shapes::cases(
                dtype,
                SHAPES,
                Binding {
                    inputs: 1,
                    batch: false,
                },
            )
        },
        ..product::row(dtype, "gemv_split")
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p = Product::of(args);
    let groups = p.n.div_ceil(ROWS);
    let threads = simd_groups(p.k, groups * p.m, chip) * SIMD_WIDTH;
    Launch::new([groups, p.m, 1], [threads, 1, 1])
}

/// SIMD groups of each of `groups` threadgroups, which share `k` values: as many as fill the chip, but none with less
/// than a step's work.
pub fn simd_groups(k: u32, groups: u32, chip: &ChipConfig) -> u32 {
    let filling = (chip.gpu_cores * SIMD_GROUPS_A_CORE).div_ceil(groups.max(1));
    let working = k.div_ceil(STEP).min(MAX_SIMD_GROUPS);
    filling.min(working).max(1)
}

/// One output, one more and one less than a threadgroup's; K of one share and a tail, of shares of several steps, and
/// so short that SIMD groups have nothing to do; rows that do and that do not consist of whole float4.
const SHAPES: &[Shape] = &[
    Shape::new(3, 1, 1),
    Shape::new(1, 5, 301).special(),
    Shape::new(1, 7, 576).factors(0.5, 2.0),
    Shape::new(2, 3, 2056).gaps().factors(1.0, 1.0),
    Shape::new(1, 9, 4864).scale(1e-4).special(),
];
