//! `async_gemm_<rows>_<format>`: `y_i = factor * (x @ weight_iᵀ) + beta * y_i` of up to three weights, by the asynchronous products
//! of compute capability 9.0; a threadgroup has 32, 64 or 128 rows of x.
//!
//! As [`shared_gemm`], but tensor cores read x from threadgroup memory themselves, while the next weights are decoded. x is in
//! columns of tiles ([`Order::Columns`]).

use akunu_types::DType;
use akunu_types::params::DecodeGemmParams;
use half::f16;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::extent::product;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::nvidia::decode_gemm::{self, outputs, work};
use crate::kernel::nvidia::shared_gemm::{self, MAX_PARTS};
use crate::kernel::nvidia::staging::{QUAD, Staging, at_once};
use crate::table::{Args, KernelRow, Launch};

/// Rows of x of a threadgroup of `async_gemm_32`.
pub const FEWEST_ROWS: u32 = 32;
/// The same of `async_gemm_64`. Up to here SIMD groups may have splits.
pub const FEW_ROWS: u32 = 64;
/// The same of `async_gemm_128`.
pub const MANY_ROWS: u32 = 128;
/// SIMD groups of a threadgroup.
const TEAM: u32 = 8;
/// Outputs of a SIMD group.
const MATRIX: u32 = 16;
/// SIMD groups that a multiprocessor has registers for.
const SIMD_GROUPS_AT_ONCE: u32 = 16;

/// The row of the kernel table.
pub fn row_32(dtype: DType) -> KernelRow {
    row::<FEWEST_ROWS>(dtype, ("async_gemm_32_", "async_gemm_32"))
}

/// The row of the kernel table.
pub fn row_64(dtype: DType) -> KernelRow {
    row::<FEW_ROWS>(dtype, ("async_gemm_64_", "async_gemm_64"))
}

/// The row of the kernel table.
pub fn row_128(dtype: DType) -> KernelRow {
    row::<MANY_ROWS>(dtype, ("async_gemm_128_", "async_gemm_128"))
}

/// The row of the kernel that has so many rows of x, of which the name begins so, in this file.
fn row<const ROWS: u32>(dtype: DType, (name, source): (&'static str, &'static str)) -> KernelRow {
    KernelRow {
        name: (name, ""),
        source,
        launch: |args, chip| launch(args, ROWS, chip),
        required: |args| shared_gemm::Buffers::with_counters(args, counters(&args.params(), ROWS)),
        work: |args, once| work(args, once, ROWS),
        twin: |t| shared_gemm::twin_of(t, Order::Columns),
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, ROWS),
        ..shared_gemm::wide_row(dtype)
    }
}

/// How the SIMD groups of a threadgroup stand: beside each other in columns, and as splits of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Team {
    columns: u32,
    splits: u32,
}

impl Team {
    /// All beside each other.
    const WIDE: Team = Team {
        columns: TEAM,
        splits: 1,
    };
    /// Half as many outputs: four SIMD groups are the fewest that multiply together.
    const SPLIT: Team = Team {
        columns: TEAM / 2,
        splits: 2,
    };

    /// All outputs that a threadgroup can have, if that is enough to fill the chip.
    fn of(p: &DecodeGemmParams, rows: u32, chip: &ChipConfig) -> Team {
        if rows <= FEW_ROWS && Team::WIDE.n_groups(p) < chip.gpu_cores {
            Team::SPLIT
        } else {
            Team::WIDE
        }
    }

    /// Threadgroups beside each other.
    fn n_groups(self, p: &DecodeGemmParams) -> u32 {
        let of_a_group = self.columns * MATRIX;
        outputs(p).iter().map(|n| n.div_ceil(of_a_group)).sum()
    }

    /// Quads of x that are copied while one is multiplied.
    fn quads_ahead(self, rows: u32) -> u32 {
        if rows <= FEW_ROWS && self.splits == 1 {
            2
        } else {
            1
        }
    }
}

/// Bytes in which the arrivals of x are noted: eight for each quad that there is room for.
const ARRIVALS: u32 = 32;

/// Bytes of threadgroup memory: what is multiplied, what is copied meanwhile, and what has arrived.
fn threadgroup_bytes(dtype: DType, rows: u32, team: Team) -> u32 {
    let staging = Staging::of(dtype);
    let ahead = team.quads_ahead(rows);
    let steps_ahead = (ahead * QUAD).div_ceil(staging.step);
    let x = team.splits * (1 + ahead) * rows * QUAD * size_of::<f16>() as u32;
    x + (1 + steps_ahead) * TEAM * MATRIX * staging.row_bytes() + ARRIVALS
}

/// Rows of x that are not whole quads, or rows of weights that are not whole spans, get an empty grid, which the plan check
/// refuses; so does K without parts, or with more of them than there may be.
fn launch(args: &Args, rows: u32, chip: &ChipConfig) -> Launch {
    let p: DecodeGemmParams = args.params();
    let is_taken = p.lda.is_multiple_of(QUAD)
        && decode_gemm::has_whole_spans(p.K)
        && (1..=MAX_PARTS).contains(&p.n_parts);
    let team = Team::of(&p, rows, chip);
    let n_groups = if is_taken { team.n_groups(&p) } else { 0 };
    Launch {
        threadgroup_bytes: threadgroup_bytes(args.format(), rows, team),
        ..Launch::new(
            [p.M.div_ceil(rows), n_groups, p.n_parts],
            [team.columns * SIMD_WIDTH, team.splits, 1],
        )
    }
}

/// The best number of parts for a launch with so many rows of x in a threadgroup: as many as fill the chip, but no more than there
/// are pairs of steps for each split.
pub fn n_parts(p: &DecodeGemmParams, dtype: DType, rows: u32, chip: &ChipConfig) -> u32 {
    let team = Team::of(p, rows, chip);
    let at_once = at_once(threadgroup_bytes(dtype, rows, team), chip);
    let room = chip.gpu_cores * at_once.clamp(1, SIMD_GROUPS_AT_ONCE / TEAM);
    let n_groups = (p.M.div_ceil(rows) * team.n_groups(p)).max(1);
    let n_steps = p.K.div_ceil(Staging::of(dtype).step * team.splits).max(1);
    let n_parts = (room / n_groups).min(n_steps / 2).clamp(1, MAX_PARTS);
    // No more of them than have the same number of steps.
    n_steps.div_ceil(n_steps.div_ceil(n_parts))
}

/// The counters, at most: as if threadgroups had the fewest outputs.
fn counters(p: &DecodeGemmParams, rows: u32) -> usize {
    if p.n_parts > 1 {
        product(&[p.M.div_ceil(rows), Team::SPLIT.n_groups(p)])
    } else {
        0
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::nvidia::decode_gemm::MAX_WEIGHTS;

    /// Rows, outputs of each weight, K, beta and parts: fewer rows than a tile, more than a threadgroup has; fewer outputs than a SIMD
    /// group has; K of less than a quad, of a step and a tail, and of more steps than are under way; parts and splits with and without
    /// steps of their own; so many outputs that a chip of eight cores needs no splits.
    const SHAPES: [(u32, [u32; MAX_WEIGHTS], u32, f32, u32); 6] = [
        (3, [20, 1, 40], 32, 0.0, 2),
        (129, [130, 0, 0], 576, 1.0, 1),
        (20, [16, 5, 0], 9 * 256 - 32, 0.0, 1),
        (12, [70, 5, 0], 5 * 256, 1.0, 3),
        (33, [40, 0, 0], 2 * 256, 0.0, 2),
        (9, [1030, 0, 0], 288, 0.0, 1),
    ];

    pub fn all(dtype: Option<DType>, rows: u32) -> Vec<Case> {
        let of_format = |dtype: DType| {
            SHAPES.map(|(m, outputs, k, beta, n_parts)| {
                let params = DecodeGemmParams {
                    n_parts,
                    ..decode_gemm::cases::case_params(dtype, m, outputs, k, beta)
                };
                let label = format!("{m} × {outputs:?} × {}, {beta}, {n_parts}", params.K);
                let n_partial = shared_gemm::part_len(&params);
                let n_counters = counters(&params, rows);
                decode_gemm::cases::case(dtype, &params, Order::Columns, label)
                    .bind(&vec![f32::NAN; n_partial])
                    .bind(&vec![0u32; n_counters])
            })
        };
        dtype.into_iter().flat_map(of_format).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a format is staged in more memory than an H100 gives a threadgroup.
    #[test]
    fn all_formats_fit_into_threadgroup_memory() {
        const GIVEN: u32 = 227 << 10;
        for dtype in crate::kernel::nvidia::staging::formats() {
            for rows in [32, 64, 128] {
                for team in [Team::WIDE, Team::SPLIT] {
                    let bytes = threadgroup_bytes(dtype, rows, team);
                    assert!(bytes <= GIVEN, "{dtype:?}, {rows} rows: {bytes}");
                }
            }
        }
    }

    /// Breaks when a product of an 8B model leaves much of an H200 idle, or when parts are made that it does not need.
    #[test]
    fn products_are_shared_by_as_many_threadgroups_as_an_h200_holds() {
        let chip = ChipConfig::h200();
        let table = [
            (64, 64, (4096, 4096), (Team::SPLIT, 4)),
            (64, 64, (16_384, 2048), (Team::SPLIT, 1)),
            (64, 64, (28_672, 4096), (Team::WIDE, 1)),
            (64, 64, (128_256, 4096), (Team::WIDE, 1)),
            (128, 512, (4096, 4096), (Team::WIDE, 2)),
            (128, 512, (28_672, 4096), (Team::WIDE, 1)),
            (128, 128, (64, 32), (Team::WIDE, 1)),
        ];
        for (rows, m, (n, k), expected) in table {
            let p = DecodeGemmParams {
                M: m,
                K: k,
                N0: n,
                n_parts: 1,
                ..Default::default()
            };
            let n_parts = n_parts(&p, DType::Q4_0, rows, &chip);
            let found = (Team::of(&p, rows, &chip), n_parts);
            assert_eq!(found, expected, "{m} × {n} × {k}");
        }
    }
}
