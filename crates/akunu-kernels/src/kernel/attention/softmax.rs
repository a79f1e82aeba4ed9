//! `softmax_f32`: `x[r][i] = exp(x[r][i] - max(x[r])) / Σ_j exp(x[r][j] - max(x[r]))`, in place.
//!
//! A row of nothing but -infinity becomes zeros; a row with a NaN becomes NaNs.

use akunu_types::SharedStruct;
use akunu_types::params::SoftmaxParams;

use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("softmax_f32", ""),
    dtype: None,
    family: Family::Attention,
    source: "softmax",
    bindings: &[read_write(0, "data", Element::F32)],
    params_index: 1,
    params: SoftmaxParams::LAYOUT,
    constants: &[],
    launch,
    required: |args| {
        let p: SoftmaxParams = args.params();
        vec![bytes::<f32>(&[p.rows, p.cols])]
    },
    work: once,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: SoftmaxParams = args.params();
    let threads = p.cols.div_ceil(4).clamp(1, chip.max_threads);
    Launch::new([p.rows, 1, 1], [threads.next_multiple_of(SIMD_WIDTH), 1, 1])
}

fn twin(t: &mut Twin) {
    let p: SoftmaxParams = t.params();
    for row in t.write::<f32>(0).chunks_exact_mut(p.cols.max(1) as usize) {
        let peak = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let peak = if peak == f32::NEG_INFINITY { 0.0 } else { peak };
        let sum: f32 = row.iter().map(|x| (x - peak).exp()).sum();
        let inverse = if sum == 0.0 { 0.0 } else { 1.0 / sum };
        for x in row {
            *x = (*x - peak).exp() * inverse;
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        (1, 1, 1.0),
        (31, 3, 1.0),
        (32, 1, 1e-4),
        (33, 2, 80.0),
        (1000, 2, 1e4),
        (4097, 1, 3.0),
    ]
    .into_iter()
    .map(|(cols, rows, scale)| {
        let mut rng = Rng::new(u64::from(cols));
        let label = format!("cols {cols}, rows {rows}, scale {scale}");
        case(label, rows, rng.floats((rows * cols) as usize, scale))
    })
    .collect();
    let mut rows = Rng::new(7).floats(4 * 40, 5.0);
    rows[..40].fill(f32::NEG_INFINITY);
    rows[40..79].fill(f32::NEG_INFINITY);
    rows[80 + 3] = f32::NEG_INFINITY;
    rows[120 + 9] = f32::NAN;
    cases.push(case("-inf everywhere, but one, one; a NaN".into(), 4, rows));
    cases
}

/// Only the order of the sum and the last bits of exp differ: 1e-6, 1e-12 squared.
fn case(label: String, rows: u32, data: Vec<f32>) -> Case {
    let params = SoftmaxParams {
        rows,
        cols: data.len() as u32 / rows,
        ..Default::default()
    };
    Case::new(label, &params, 1e-11).bind(&data)
}
