//! `decode_gemm_<format>`, `decode_gemm_double_<format>`: `y_i = factor * (x @ weight_iᵀ) + beta * y_i` of a few rows and up to three
//! weights, on tensor cores.
//!
//! As [`tensor_gemm`](super::tensor_gemm), but weights go through threadgroup memory as they are stored, two steps ahead, and are decoded into the
//! registers that tensor cores read; 16 outputs are a SIMD group's, times 16 or 32 rows, and SIMD groups wait for nobody. x is in
//! tiles ([`Order::Spans`]); its rows hold zeros behind K, up to a multiple of [`QUAD`].

#[cfg(feature = "testing")]
pub(crate) mod cases;

use akunu_types::DType;
use akunu_types::format::QK_K;
use akunu_types::params::DecodeGemmParams;
use half::f16;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::bytes;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::matmul::product::Product;
use crate::kernel::nvidia::staging::{self, QUAD, Staging, at_once};
use crate::table::{Args, Family, KernelRow, Launch, Weight, buffers};
use crate::twin::Twin;
use crate::weight::WeightLayout;

/// Rows of x of a threadgroup of `decode_gemm`.
pub const ROWS: u32 = 16;
/// The same of `decode_gemm_double`.
const DOUBLE_ROWS: u32 = 32;
/// Most weights of a launch.
pub const MAX_WEIGHTS: usize = 3;
/// Values that a lane has at once.
const SPAN: u32 = 32;
/// Outputs of a SIMD group.
const OUTPUTS: u32 = 16;
/// SIMD groups that a core holds at once: their registers are all it has.
const SIMD_GROUPS_AT_ONCE: u32 = 16;
/// Most SIMD groups of a threadgroup.
const TEAM: u32 = 8;
/// Steps that a SIMD group has under way at once.
const STAGES: u32 = 2;
/// Values of K by which the time of a threadgroup is estimated, whatever the steps of its format are.
const SHARE: u32 = 256;
/// Shares that could be multiplied while a threadgroup waits for its first weights.
const SHARES_OF_A_WAIT: u32 = 4;

/// The formats that have such a kernel: those of super-blocks have [`shared_gemm`](super::shared_gemm) alone.
pub fn formats() -> impl Iterator<Item = DType> {
    staging::formats().filter(|dtype| dtype.block_len() < QK_K)
}

buffers! {
    /// Of a product that threadgroups do not share.
    pub struct Buffers, Slices(|args| p = args.params::<DecodeGemmParams>(), DecodeGemmParams at 7) {
        x: read f16 = [Order::Spans.rows(p.M), p.lda],
        weight_0: read Weight = weight(args, p.N0, p.K).bytes(),
        weight_1: read Weight = weight(args, p.N1, p.K).bytes(),
        weight_2: read Weight = weight(args, p.N2, p.K).bytes(),
        y_0: change f32 = [p.M, p.N0],
        y_1: change f32 = [p.M, p.N1],
        y_2: change f32 = [p.M, p.N2],
        scale: read f32 = [p.M],
    }
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("decode_gemm_", ""),
        dtype: Some(dtype),
        family: Family::Nvidia,
        source: "decode_gemm",
        launch: |args, chip| launch(args, chip, ROWS),
        work: |args, once| work(args, once, ROWS),
        twin,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..KernelRow::of::<Buffers<()>>()
    }
}

/// The row of the kernel table.
pub fn double_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("decode_gemm_double_", ""),
        source: "decode_gemm_double",
        launch: |args, chip| launch(args, chip, DOUBLE_ROWS),
        work: |args, once| work(args, once, DOUBLE_ROWS),
        ..row(dtype)
    }
}

pub(super) fn outputs(p: &DecodeGemmParams) -> [u32; MAX_WEIGHTS] {
    [p.N0, p.N1, p.N2]
}

/// Threadgroups of so many columns for all weights.
fn n_groups(outputs: [u32; MAX_WEIGHTS], columns: u32) -> u32 {
    outputs.iter().map(|n| n.div_ceil(OUTPUTS * columns)).sum()
}

/// Whether lanes have whole spans of rows of `k` values.
pub(super) fn has_whole_spans(k: u32) -> bool {
    k.is_multiple_of(SPAN)
}

/// Whether a launch of more than [`ROWS`] rows has `decode_gemm_double`, which decodes weights half as often: where cores have at
/// least three threadgroups for every two of them. Measured on an H200 (docs/nvidia-log.md).
pub fn has_double_rows(p: &DecodeGemmParams, chip: &ChipConfig) -> bool {
    let n_threadgroups = p.M.div_ceil(DOUBLE_ROWS) * n_groups(outputs(p), 1);
    p.M > ROWS && 2 * n_threadgroups >= 3 * chip.gpu_cores
}

/// The memory of a threadgroup: each of its SIMD groups has steps of its own under way.
fn threadgroup_bytes(dtype: DType, n_simd_groups: u32) -> u32 {
    n_simd_groups * STAGES * OUTPUTS * Staging::of(dtype).row_bytes()
}

/// Rows of x that are not whole quads, or rows of weights that are not whole spans, get an empty grid, which the plan check refuses.
fn launch(args: &Args, chip: &ChipConfig, rows: u32) -> Launch {
    let p: DecodeGemmParams = args.params();
    let (columns, splits) = team(args, p.M.div_ceil(rows), chip);
    let n_groups = if p.lda.is_multiple_of(QUAD) && has_whole_spans(p.K) {
        n_groups(outputs(&p), columns)
    } else {
        0
    };
    Launch {
        threadgroup_bytes: threadgroup_bytes(args.format(), columns * splits),
        ..Launch::new(
            [p.M.div_ceil(rows), n_groups, 1],
            [columns * SIMD_WIDTH, splits, 1],
        )
    }
}

/// Columns and splits of a threadgroup's SIMD groups, by how long they take: the threadgroups that a GPU holds at once are a wave,
/// and each takes the values of a split and waits for its first ones. Of those that take as long, the ones that leave the fullest
/// core the fewest steps.
fn team(args: &Args, n_tiles: u32, chip: &ChipConfig) -> (u32, u32) {
    let p: DecodeGemmParams = args.params();
    let step = Staging::of(args.format()).step;
    let time = |&columns: &u32| {
        let splits = TEAM / columns;
        let n_simd_groups = columns * splits;
        let by_registers = SIMD_GROUPS_AT_ONCE / n_simd_groups;
        let by_memory = at_once(threadgroup_bytes(args.format(), n_simd_groups), chip);
        let n_at_once = chip.gpu_cores * by_memory.clamp(1, by_registers);
        let n_groups = n_tiles * n_groups(outputs(&p), columns);
        let shares = p.K.div_ceil(SHARE).div_ceil(splits);
        let time = n_groups.div_ceil(n_at_once.max(1)) * (shares + SHARES_OF_A_WAIT);
        let on_fullest = n_groups.div_ceil(chip.gpu_cores.max(1));
        (
            time,
            on_fullest * n_simd_groups * p.K.div_ceil(step).div_ceil(splits),
        )
    };
    let columns = (1..=TEAM).rev().min_by_key(time).unwrap_or(1);
    (columns, TEAM / columns)
}

pub(super) fn weight(args: &Args, n: u32, k: u32) -> WeightLayout {
    WeightLayout::contiguous(args.format(), n as usize, k as usize)
}

/// The work of all kernels of such products, whose buffers begin alike.
pub(super) fn work(args: &Args, once: Work, rows: u32) -> Work {
    let p: DecodeGemmParams = args.params();
    let passes = p.M.div_ceil(rows) as usize;
    let b = Buffers::PLACES;
    let places = [
        (b.weight_0, b.y_0),
        (b.weight_1, b.y_1),
        (b.weight_2, b.y_2),
    ];
    let mut work = once;
    for ((weight_at, y_at), n) in places.into_iter().zip(outputs(&p)) {
        let y = bytes::<f32>(&[p.M, n]);
        let y = if p.beta == 0.0 {
            Traffic::written(y)
        } else {
            Traffic::both(y)
        };
        let weights = weight(args, n, p.K).bytes().saturating_mul(passes);
        work = work.with(weight_at, Traffic::read(weights)).with(y_at, y);
    }
    work.with_flops(multiply_adds(&[p.M, outputs(&p).iter().sum(), p.K]))
}

fn twin(t: &mut Twin) {
    let args = t.args();
    let b = Slices::of(t);
    let x = floats(&args.params(), b.x, b.scale, Order::Spans);
    let weights = [b.weight_0, b.weight_1, b.weight_2];
    multiply(&args, &x, weights, [b.y_0, b.y_1, b.y_2]);
}

/// x as floats.
pub(super) fn floats(
    p: &DecodeGemmParams,
    halves: &[f16],
    scale: &[f32],
    order: Order,
) -> Vec<f32> {
    let (m, k) = (p.M as usize, p.K as usize);
    let mut x = vec![0f32; m * k];
    for (row, x) in x.chunks_exact_mut(k.max(1)).enumerate() {
        for (i, x) in x.iter_mut().enumerate() {
            *x = halves[order.place(p.lda as usize, row, i)].to_f32() * scale[row];
        }
    }
    x
}

/// The products.
pub(super) fn multiply(
    args: &Args,
    x: &[f32],
    weights: [&[u8]; MAX_WEIGHTS],
    ys: [&mut [f32]; MAX_WEIGHTS],
) {
    let p: DecodeGemmParams = args.params();
    for ((n, bytes), y) in outputs(&p).into_iter().zip(weights).zip(ys) {
        let product = Product {
            m: p.M,
            beta: p.beta,
            ..Product::single(weight(args, n, p.K))
        };
        product.compute(x, bytes, y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constants;
    use crate::table::KernelId;

    /// Breaks when half as many threadgroups would leave an H200 idle, or when up to 16 rows get those of 32.
    #[test]
    fn threadgroups_of_32_rows_are_those_that_fill_the_chip() {
        let table = [
            (64, [2048, 1024, 1024], true),
            (64, [1024, 0, 0], false),
            (32, [2048, 1024, 1024], true),
            (32, [1024, 1024, 1024], false),
            (17, [3168, 0, 0], true),
            (17, [3152, 0, 0], false),
            (16, [14_336, 14_336, 0], false),
        ];
        for (m, [n0, n1, n2], expected) in table {
            let p = DecodeGemmParams {
                M: m,
                N0: n0,
                N1: n1,
                N2: n2,
                ..Default::default()
            };
            let found = has_double_rows(&p, &ChipConfig::h200());
            assert_eq!(found, expected, "{m} rows, {n0} + {n1} + {n2}");
        }
    }

    /// Breaks when the threadgroups of an 8B model leave much of an H200 idle, when those of a 135M model leave half of it to
    /// nobody, or when no case has threadgroups whose columns are no power of two.
    #[test]
    fn threadgroups_fill_the_chip() {
        let h200 = ChipConfig::h200();
        let small = ChipConfig {
            core_bytes: 100 << 10,
            ..h200.clone()
        };
        let table = [
            (&h200, DType::Q4_0, [4096, 0], 4096, (1, 8)),
            (&h200, DType::Q4_0, [4096, 2048], 4096, (2, 4)),
            (&h200, DType::Q4_0, [14_336, 14_336], 4096, (7, 1)),
            (&h200, DType::Q4_0, [4096, 0], 14_336, (1, 8)),
            (&h200, DType::F16, [4096, 0], 4096, (1, 8)),
            (&h200, DType::Q8_0, [576, 384], 576, (1, 8)),
            (&h200, DType::Q8_0, [2048, 2048], 1024, (2, 4)),
            (&small, DType::F16, [4096, 0], 4096, (2, 4)),
            (&ChipConfig::m1(), DType::Q4_0, [448, 430], 64, (7, 1)),
        ];
        for (chip, dtype, [n0, n1], k, expected) in table {
            let p = DecodeGemmParams {
                M: 16,
                K: k,
                N0: n0,
                N1: n1,
                ..Default::default()
            };
            let none = Constants::none();
            let row = KernelId::DecodeGemm(dtype).row();
            let args = row.args(bytemuck::bytes_of(&p), &none);
            assert_eq!(team(&args, 1, chip), expected, "{dtype:?} {n0} + {n1}, {k}");
        }
    }
}
