//! `async_gemm_<rows>_<format>`: `y_i = factor * (x @ weight_iᵀ) + beta * y_i` of up to three weights, by the asynchronous products
//! of compute capability 9.0; a threadgroup has 32, 64 or 128 rows of x.
//!
//! As [`shared_gemm`], but tensor cores read x from threadgroup memory themselves, while the next weights are decoded. x is in
//! columns of tiles ([`Order::Columns`]).

use akunu_types::DType;
use akunu_types::params::DecodeGemmParams;
use half::f16;

use crate::case::Case;
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::extent::bytes;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::nvidia::decode_gemm::{self, MAX_WEIGHTS, QUAD, outputs, work};
use crate::kernel::nvidia::shared_gemm::{self, MAX_PARTS, Staging};
use crate::table::{Args, KernelRow, Launch};

/// Rows of x of a threadgroup of `async_gemm_32`.
pub const FEWEST_ROWS: u32 = 32;
/// The same of `async_gemm_64`. Up to here two quads of x are copied ahead, and threadgroups may be small; beyond it is one quad.
pub const FEW_ROWS: u32 = 64;
/// The same of `async_gemm_128`.
pub const MANY_ROWS: u32 = 128;
/// SIMD groups of a threadgroup; of one of few rows half as many, where outputs are few.
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
        required: |args| required(args, ROWS),
        work: |args, once| work(args, once, ROWS),
        twin: |t| shared_gemm::twin_of(t, Order::Columns),
        cases: |dtype| cases(dtype, ROWS),
        ..shared_gemm::wide_row(dtype)
    }
}

/// Threadgroups beside each other, where each has so many SIMD groups.
fn n_columns(p: &DecodeGemmParams, team: u32) -> u32 {
    outputs(p).iter().map(|n| n.div_ceil(team * MATRIX)).sum()
}

/// SIMD groups of a threadgroup: all, if that is enough to fill the chip.
fn team(p: &DecodeGemmParams, rows: u32, chip: &ChipConfig) -> u32 {
    if rows <= FEW_ROWS && n_columns(p, TEAM) < chip.gpu_cores {
        TEAM / 2
    } else {
        TEAM
    }
}

/// Bytes in which the arrivals of x are noted: eight for each quad that there is room for.
const ARRIVALS: u32 = 32;

/// Bytes of threadgroup memory: what is multiplied, what is copied meanwhile, and what has arrived.
fn threadgroup_bytes(dtype: DType, rows: u32, team: u32) -> u32 {
    let staging = Staging::of(dtype);
    let ahead = if rows <= FEW_ROWS { 2 } else { 1 };
    let steps_ahead = (ahead * QUAD).div_ceil(staging.step);
    let x = (1 + ahead) * rows * QUAD * size_of::<f16>() as u32;
    x + (1 + steps_ahead) * team * MATRIX * staging.row_bytes() + ARRIVALS
}

/// Rows of x that are not whole quads, or rows of weights that are not whole spans, get an empty grid, which the plan check
/// refuses; so does K without parts, or with more of them than there may be.
fn launch(args: &Args, rows: u32, chip: &ChipConfig) -> Launch {
    let p: DecodeGemmParams = args.params();
    let is_taken = p.lda.is_multiple_of(QUAD)
        && decode_gemm::has_whole_spans(p.K)
        && (1..=MAX_PARTS).contains(&p.n_parts);
    let team = team(&p, rows, chip);
    let n_columns = if is_taken { n_columns(&p, team) } else { 0 };
    Launch {
        threadgroup_bytes: threadgroup_bytes(args.format(), rows, team),
        ..Launch::new(
            [p.M.div_ceil(rows), n_columns, p.n_parts],
            [team * SIMD_WIDTH, 1, 1],
        )
    }
}

/// The best number of parts for a launch with so many rows of x in a threadgroup: as many as fill the chip, but no more than there
/// are pairs of steps.
pub fn n_parts(p: &DecodeGemmParams, dtype: DType, rows: u32, chip: &ChipConfig) -> u32 {
    let team = team(p, rows, chip);
    let at_once = shared_gemm::at_once(threadgroup_bytes(dtype, rows, team));
    let room = chip.gpu_cores * at_once.clamp(1, SIMD_GROUPS_AT_ONCE / team);
    let n_groups = (p.M.div_ceil(rows) * n_columns(p, team)).max(1);
    let n_steps = p.K.div_ceil(Staging::of(dtype).step).max(1);
    let n_parts = (room / n_groups).min(n_steps / 2).clamp(1, MAX_PARTS);
    // No more of them than have the same number of steps.
    n_steps.div_ceil(n_steps.div_ceil(n_parts))
}

/// Bytes of the counters, at most: as if threadgroups had the fewest outputs.
fn counter_bytes(p: &DecodeGemmParams, rows: u32) -> usize {
    if p.n_parts > 1 {
        bytes::<u32>(&[p.M.div_ceil(rows), n_columns(p, TEAM / 2)])
    } else {
        0
    }
}

fn required(args: &Args, rows: u32) -> Vec<usize> {
    let p: DecodeGemmParams = args.params();
    let mut all = decode_gemm::required(args);
    all.push(shared_gemm::part_bytes(&p));
    all.push(counter_bytes(&p, rows));
    all
}

/// Rows, outputs of each weight, K, beta and parts: fewer rows than a tile, more than a threadgroup has; fewer outputs than a SIMD
/// group has; K of less than a quad, of a step and a tail, and of more steps than are under way; parts with and without steps of
/// their own.
const SHAPES: [(u32, [u32; MAX_WEIGHTS], u32, f32, u32); 5] = [
    (3, [20, 1, 40], 32, 0.0, 2),
    (129, [130, 0, 0], 576, 1.0, 1),
    (20, [16, 5, 0], 9 * 256 - 32, 0.0, 1),
    (12, [70, 5, 0], 5 * 256, 1.0, 3),
    (33, [40, 0, 0], 2 * 256, 0.0, 2),
];

fn cases(dtype: Option<DType>, rows: u32) -> Vec<Case> {
    let of_format = |dtype: DType| {
        SHAPES.map(|(m, outputs, k, beta, n_parts)| {
            let params = DecodeGemmParams {
                n_parts,
                ..decode_gemm::case_params(dtype, m, outputs, k, beta)
            };
            let label = format!("{m} × {outputs:?} × {}, {beta}, {n_parts}", params.K);
            let n_partial = shared_gemm::part_bytes(&params) / size_of::<f32>();
            let n_counters = counter_bytes(&params, rows) / size_of::<u32>();
            decode_gemm::case(dtype, &params, Order::Columns, label)
                .bind(&vec![f32::NAN; n_partial])
                .bind(&vec![0u32; n_counters])
        })
    };
    dtype.into_iter().flat_map(of_format).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::GpuFamily;

    /// Breaks when a format is staged in more memory than an H100 gives a threadgroup.
    #[test]
    fn all_formats_fit_into_threadgroup_memory() {
        const GIVEN: u32 = 227 << 10;
        for dtype in shared_gemm::formats() {
            for rows in [32, 64, 128] {
                let bytes = threadgroup_bytes(dtype, rows, TEAM);
                assert!(bytes <= GIVEN, "{dtype:?}, {rows} rows: {bytes}");
            }
        }
    }

    /// Breaks when a product of an 8B model leaves much of an H200 idle, or when parts are made that it does not need.
    #[test]
    fn products_are_shared_by_as_many_threadgroups_as_an_h200_holds() {
        let chip = ChipConfig {
            family: GpuFamily::Nvidia(90),
            gpu_cores: 132,
            ..ChipConfig::m1()
        };
        let table = [
            (64, 64, (4096, 4096), (4, 6)),
            (64, 64, (28_672, 4096), (8, 1)),
            (64, 64, (128_256, 4096), (8, 1)),
            (128, 512, (4096, 4096), (8, 2)),
            (128, 512, (28_672, 4096), (8, 1)),
            (128, 128, (64, 32), (8, 1)),
        ];
        for (rows, m, (n, k), expected) in table {
            let p = DecodeGemmParams {
                M: m,
                K: k,
                N0: n,
                n_parts: 1,
                ..Default::default()
            };
            let found = (team(&p, rows, &chip), n_parts(&p, DType::Q4_0, rows, &chip));
            assert_eq!(found, expected, "{m} × {n} × {k}");
        }
    }
}
