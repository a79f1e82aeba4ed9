//! `decode_gemm_wide_<format>`, `decode_gemm_widest_<format>`: as [`decode_gemm`], of up to 32 and 64 rows.
//!
//! The SIMD groups of a threadgroup share x, which goes through threadgroup memory as the weights do, two quads ahead.
//! Where there are too few outputs for the chip, threadgroups share the sums of an output: each has the steps of a part, and
//! the last to arrive adds the parts up.

use akunu_types::DType;
use akunu_types::params::DecodeGemmParams;
use half::f16;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::extent::product;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::matmul::product::Product;
use crate::kernel::nvidia::decode_gemm::{self, MAX_WEIGHTS, outputs, weight, work};
use crate::kernel::nvidia::staging::{self, QUAD, Staging, at_once};
use crate::table::{Args, BufferSet, Family, KernelRow, Launch, Weight, buffers, bytes_of};
use crate::twin::Twin;

/// Rows of x of a threadgroup of `decode_gemm_wide`.
pub const WIDE_ROWS: u32 = 32;
/// The same of `decode_gemm_widest`.
pub const WIDEST_ROWS: u32 = 64;
/// Most threadgroups that share an output.
pub const MAX_PARTS: u32 = 8;
/// Values that a lane has at once.
const SPAN: u32 = 32;
/// SIMD groups of a threadgroup.
const TEAM: u32 = 4;
/// Quads of x that there is room for.
const X_STAGES: u32 = 3;

/// Bytes of threadgroup memory: a ring of tiles for each split, a ring of weights for each SIMD group.
fn threadgroup_bytes(staging: &Staging, rows: u32, splits: u32) -> u32 {
    let x = X_STAGES * rows * QUAD * size_of::<f16>() as u32;
    let stages = 1 + ((X_STAGES - 1) * QUAD).div_ceil(staging.step);
    splits * x + TEAM * stages * staging.outputs * staging.row_bytes()
}

/// How the SIMD groups of a launch share its outputs and K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sharing {
    /// SIMD groups of a threadgroup beside each other.
    columns: u32,
    /// Threadgroups that share an output.
    n_parts: u32,
}

/// Whether there is one for weights of a format whose rows have `k` values: whole spans.
pub fn takes(dtype: DType, k: u32) -> bool {
    k.is_multiple_of(SPAN) && staging::formats().any(|known| known == dtype)
}

buffers! {
    /// Of a product that threadgroups may share. Counters are as many as threadgroups of the fewest rows and outputs need.
    pub struct Buffers, Slices(|args| p = args.params::<DecodeGemmParams>(), DecodeGemmParams at 7) {
        x: read f16 = [Order::Spans.rows(p.M), p.lda],
        weight_0: read Weight = weight(args, p.N0, p.K).bytes(),
        weight_1: read Weight = weight(args, p.N1, p.K).bytes(),
        weight_2: read Weight = weight(args, p.N2, p.K).bytes(),
        y_0: change f32 = [p.M, p.N0],
        y_1: change f32 = [p.M, p.N1],
        y_2: change f32 = [p.M, p.N2],
        scale: read f32 = [p.M],
        parts: change f32 = part_len(&p),
        arrived: change u32 = counters(&p, args.format(), WIDE_ROWS),
    }
}

impl<T> Buffers<T> {
    /// Those of a product alone, with the parts and their counters.
    pub fn with_parts(own: decode_gemm::Buffers<T>, parts: T, arrived: T) -> Buffers<T> {
        Buffers {
            x: own.x,
            weight_0: own.weight_0,
            weight_1: own.weight_1,
            weight_2: own.weight_2,
            y_0: own.y_0,
            y_1: own.y_1,
            y_2: own.y_2,
            scale: own.scale,
            parts,
            arrived,
        }
    }
}

impl Buffers<usize> {
    /// The bytes of a kernel with as many counters.
    pub(super) fn with_counters(args: &Args, counters: usize) -> Vec<usize> {
        let all = Buffers {
            arrived: bytes_of::<u32>(counters),
            ..Buffers::bytes(args)
        };
        all.in_order()
    }
}

/// The row of the kernel table.
pub fn wide_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("decode_gemm_wide_", ""),
        dtype: Some(dtype),
        family: Family::Nvidia,
        source: "decode_gemm_wide",
        launch: |args, chip| launch(args, chip, WIDE_ROWS),
        work: |args, once| work(args, once, WIDE_ROWS),
        twin,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..KernelRow::of::<Buffers<()>>()
    }
}

/// The row of the kernel table.
pub fn widest_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("decode_gemm_widest_", ""),
        source: "decode_gemm_widest",
        launch: |args, chip| launch(args, chip, WIDEST_ROWS),
        required: |args| {
            let n = counters(&args.params(), args.format(), WIDEST_ROWS);
            Buffers::with_counters(args, n)
        },
        work: |args, once| work(args, once, WIDEST_ROWS),
        ..wide_row(dtype)
    }
}

/// Threadgroups for all weights, where each has so many outputs.
fn n_groups(outputs: [u32; MAX_WEIGHTS], of_group: u32) -> u32 {
    outputs.iter().map(|n| n.div_ceil(of_group)).sum()
}

/// Rows of x that are not whole quads, or rows of weights that are not whole spans, get an empty grid, which the plan check
/// refuses; so does K without parts, or with more of them than there may be.
fn launch(args: &Args, chip: &ChipConfig, rows: u32) -> Launch {
    let p: DecodeGemmParams = args.params();
    let staging = Staging::of(args.format());
    let columns = share(&p, args.format(), rows, chip).columns;
    let splits = TEAM / columns;
    let is_taken = p.lda.is_multiple_of(QUAD)
        && p.K.is_multiple_of(SPAN)
        && (1..=MAX_PARTS).contains(&p.n_parts);
    let n_groups = if is_taken {
        n_groups(outputs(&p), staging.outputs * columns)
    } else {
        0
    };
    Launch {
        threadgroup_bytes: threadgroup_bytes(&staging, rows, splits),
        ..Launch::new(
            [p.M.div_ceil(rows), n_groups, p.n_parts],
            [columns * SIMD_WIDTH, splits, 1],
        )
    }
}

/// The best number of parts for a launch with so many rows of x in a threadgroup.
pub fn n_parts(p: &DecodeGemmParams, dtype: DType, rows: u32, chip: &ChipConfig) -> u32 {
    share(p, dtype, rows, chip).n_parts
}

/// The widest threadgroups that fill three quarters of the chip, or else the narrowest. Splits of a threadgroup need room for the
/// quads of x of each.
fn share(p: &DecodeGemmParams, dtype: DType, rows: u32, chip: &ChipConfig) -> Sharing {
    let columns = [4, 2].into_iter();
    let columns = columns.filter(|columns| TEAM / columns * rows <= WIDEST_ROWS);
    let mut best = Sharing {
        columns: TEAM,
        n_parts: 1,
    };
    for columns in columns {
        let (sharing, is_filling) = share_by(p, &Staging::of(dtype), (rows, columns), chip);
        best = sharing;
        if is_filling {
            break;
        }
    }
    best
}

/// As many parts as fill the chip, but no more than there are pairs of steps, and whether they fill three quarters of it.
fn share_by(
    p: &DecodeGemmParams,
    staging: &Staging,
    (rows, columns): (u32, u32),
    chip: &ChipConfig,
) -> (Sharing, bool) {
    let splits = TEAM / columns;
    let at_once = at_once(threadgroup_bytes(staging, rows, splits), chip);
    let room = chip.gpu_cores * at_once.clamp(1, if rows == WIDEST_ROWS { 2 } else { 3 });
    let n_groups = n_groups(outputs(p), staging.outputs * columns).max(1);
    // To add up the parts of few rows takes longer than to multiply them.
    let most = if rows == WIDEST_ROWS {
        MAX_PARTS
    } else {
        MAX_PARTS / 2
    };
    let n_steps = p.K.div_ceil(staging.step).max(1);
    let mut n_parts = room / n_groups;
    if 5 * n_groups * n_parts < 3 * room {
        n_parts += 1;
    }
    let n_parts = n_parts.min(n_steps / (2 * splits)).clamp(1, most);
    // No more of them than have the same number of steps.
    let n_rounds = n_steps.div_ceil(splits * n_parts);
    let n_parts = n_steps.div_ceil(splits * n_rounds);
    let sharing = Sharing { columns, n_parts };
    (sharing, 4 * n_groups * n_parts >= 3 * room)
}

/// Elements of the parts; none where there is one alone, which stays in registers.
pub fn part_len(p: &DecodeGemmParams) -> usize {
    if p.n_parts > 1 {
        product(&[p.n_parts, outputs(p).iter().sum(), Order::Spans.rows(p.M)])
    } else {
        0
    }
}

/// The counters, at most: as if threadgroups had the fewest outputs.
pub fn counters(p: &DecodeGemmParams, dtype: DType, rows: u32) -> usize {
    if p.n_parts > 1 {
        let n_groups = n_groups(outputs(p), Staging::of(dtype).outputs);
        product(&[p.M.div_ceil(rows), n_groups])
    } else {
        0
    }
}

fn twin(t: &mut Twin) {
    twin_of(t, Order::Spans);
}

/// The twin where x lies in an order.
pub(super) fn twin_of(t: &mut Twin, order: Order) {
    let args = t.args();
    let p: DecodeGemmParams = t.params();
    let b = Slices::of(t);
    let x = decode_gemm::floats(&p, b.x, b.scale, order);
    let weights = [b.weight_0, b.weight_1, b.weight_2];
    decode_gemm::multiply(&args, &x, weights, [b.y_0, b.y_1, b.y_2]);
    if p.n_parts > 1 {
        for part in 0..p.n_parts as usize {
            twin_part(&args, &x, weights, part, b.parts);
        }
    }
}

/// A part of the products: of every step of K whose number leaves `part` over.
fn twin_part(
    args: &Args,
    x: &[f32],
    weights: [&[u8]; MAX_WEIGHTS],
    part: usize,
    parts: &mut [f32],
) {
    let p: DecodeGemmParams = args.params();
    let (m, k, n_parts) = (p.M as usize, p.K as usize, p.n_parts as usize);
    let step = Staging::of(args.format()).step as usize;
    let mut of_part = x.to_vec();
    for row in of_part.chunks_exact_mut(k.max(1)) {
        for (index, values) in row.chunks_mut(step).enumerate() {
            if index % n_parts != part {
                values.fill(0.0);
            }
        }
    }
    // Rows of an output lie behind each other; those that fill a tile are zeros.
    let n_all: usize = outputs(&p).iter().sum::<u32>() as usize;
    let stride = Order::Spans.rows(p.M) as usize;
    let mut first = part * n_all * stride;
    for (n, bytes) in outputs(&p).into_iter().zip(weights) {
        let product = Product {
            m: p.M,
            ..Product::single(weight(args, n, p.K))
        };
        let n = n as usize;
        let mut y = vec![0f32; m * n];
        product.compute(&of_part, bytes, &mut y);
        let to = &mut parts[first..][..n * stride];
        to.fill(0.0);
        for (index, y) in y.into_iter().enumerate() {
            to[index % n * stride + index / n] = y;
        }
        first += n * stride;
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;

    /// Rows, outputs of each weight, K, beta and parts: fewer rows than a tile, a tile and a row, more than a threadgroup has; fewer
    /// outputs than a SIMD group has; K of less than a quad, of a step and a tail, of fewer and of more steps than are under way;
    /// parts with and without steps of their own.
    const SHAPES: [(u32, [u32; MAX_WEIGHTS], u32, f32, u32); 6] = [
        (2, [3, 0, 0], 32, 0.0, 1),
        (9, [33, 0, 0], 576, 1.0, 1),
        (17, [20, 1, 40], 256, 0.0, 2),
        (16, [16, 5, 0], 9 * 256 * 3 - 32, 0.0, 1),
        (33, [40, 0, 0], 5 * 256, 1.0, 3),
        (65, [130, 8, 0], 3 * 256, 0.0, 2),
    ];

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        let each = dtype.into_iter().flat_map(|dtype| {
            SHAPES
                .into_iter()
                .map(move |(m, outputs, k, beta, n_parts)| {
                    let params = DecodeGemmParams {
                        n_parts,
                        ..decode_gemm::cases::case_params(dtype, m, outputs, k, beta)
                    };
                    let k = params.K;
                    let label = format!("{m} × {outputs:?} × {k}, {beta}, {n_parts}");
                    case(dtype, &params, label)
                })
        });
        each.collect()
    }

    /// As of [`decode_gemm`], with the parts and their counters.
    fn case(dtype: DType, p: &DecodeGemmParams, label: String) -> Case {
        // Counters for the fewest rows and outputs that a threadgroup has.
        let counters = counters(p, dtype, WIDE_ROWS);
        decode_gemm::cases::case(dtype, p, Order::Spans, label)
            .bind(&vec![f32::NAN; part_len(p)])
            .bind(&vec![0u32; counters])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a product of an 8B model leaves much of an H200 idle, or when parts are made that it does not need.
    #[test]
    fn products_are_shared_by_as_many_threadgroups_as_an_h200_holds() {
        let chip = ChipConfig::h200();
        let table = [
            (WIDE_ROWS, (4096, 4096), (2, 4)),
            (WIDE_ROWS, (28_672, 4096), (4, 2)),
            (WIDE_ROWS, (4096, 14_336), (2, 4)),
            (WIDE_ROWS, (128_256, 4096), (4, 1)),
            (WIDEST_ROWS, (6144, 4096), (4, 4)),
            (WIDEST_ROWS, (4096, 4096), (4, 8)),
            (WIDEST_ROWS, (28_672, 4096), (4, 1)),
            (WIDEST_ROWS, (4096, 14_336), (4, 8)),
            (WIDEST_ROWS, (128_256, 4096), (4, 1)),
            (WIDEST_ROWS, (64, 32), (4, 1)),
        ];
        for (rows, (n, k), (columns, n_parts)) in table {
            let p = DecodeGemmParams {
                M: rows,
                K: k,
                N0: n,
                n_parts: 1,
                ..Default::default()
            };
            let shared = share(&p, DType::Q4_0, rows, &chip);
            assert_eq!(shared, Sharing { columns, n_parts }, "{rows} × {n} × {k}");
        }
    }

    /// Breaks when a GPU whose multiprocessors hold one threadgroup, where an H200's hold two, gets parts that wait for their turn.
    #[test]
    fn parts_are_as_many_as_the_memory_of_a_multiprocessor_holds() {
        let p = DecodeGemmParams {
            M: WIDEST_ROWS,
            K: 4096,
            N0: 4096,
            n_parts: 1,
            ..Default::default()
        };
        for (core_bytes, expected) in [(228 << 10, 8), (100 << 10, 4), (32 << 10, 4)] {
            let chip = ChipConfig {
                core_bytes,
                ..ChipConfig::h200()
            };
            let found = n_parts(&p, DType::Q4_0, WIDEST_ROWS, &chip);
            assert_eq!(found, expected, "{core_bytes} bytes");
        }
    }

    /// Breaks when a format is staged in more memory than every GPU with tensor cores gives a threadgroup.
    #[test]
    fn all_formats_fit_into_threadgroup_memory() {
        const GIVEN: u32 = 99 << 10;
        for dtype in staging::formats() {
            for rows in [WIDE_ROWS, WIDEST_ROWS] {
                let bytes = threadgroup_bytes(&Staging::of(dtype), rows, WIDEST_ROWS / rows);
                assert!(bytes <= GIVEN, "{dtype:?}, {rows} rows: {bytes}");
            }
        }
    }
}
