//! `half_rows_f32`: `y[r][i] = x[r][i] / factor[r]` as halves, where `factor[r]` is the largest power of two that is not
//! above the largest `|x[r][i]|`.
//!
//! What tensor cores read. Activations exceed what a half can hold (65504) in some models; with a factor for each row the
//! largest number of a row is between 1 and 2, and what is rounded away is 2⁻¹² of a number, or 2⁻²⁵ of the row's largest.
//! Behind the elements of a row there are zeros, up to where the next row begins.

use akunu_types::SharedStruct;
use akunu_types::params::HalfRowsParams;
use half::f16;

use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("half_rows_f32", ""),
    dtype: None,
    family: Family::Convert,
    source: "half_rows",
    bindings: &[
        read(0, "x", Element::F32),
        write(1, "y", Element::F16),
        write(2, "factor", Element::F32),
    ],
    params_index: 3,
    params: HalfRowsParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

/// A row is read twice, the second time from cache.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: HalfRowsParams = args.params();
    let threads = p.stride.div_ceil(4).clamp(1, chip.max_threads.min(256));
    Launch::new([p.rows, 1, 1], [threads.next_multiple_of(SIMD_WIDTH), 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: HalfRowsParams = args.params();
    vec![
        bytes::<f32>(&[p.rows, p.cols]),
        bytes::<f16>(&[p.rows, p.stride]),
        bytes::<f32>(&[p.rows]),
    ]
}

fn twin(t: &mut Twin) {
    let p: HalfRowsParams = t.params();
    let x = t.read::<f32>(0);
    for (row, x) in x.chunks_exact(p.cols.max(1) as usize).enumerate() {
        let largest = x.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        let factor = power_of_two(largest);
        t.write::<f32>(2)[row] = factor;
        let y = &mut t.write::<f16>(1)[row * p.stride as usize..][..p.stride as usize];
        y.fill(f16::ZERO);
        for (y, x) in y.iter_mut().zip(x) {
            *y = f16::from_f32(x / factor);
        }
    }
}

/// The largest power of two up to x, at least 2⁻¹⁰⁰: a row of zeros has that.
fn power_of_two(x: f32) -> f32 {
    const LEAST: u32 = 27 << 23;
    f32::from_bits((x.to_bits() & 0x7f80_0000).max(LEAST))
}

/// Rows shorter and longer than the threads, of whole vectors and not, with and without zeros behind them; numbers that no
/// half holds, and none but zeros. Only the rounding of ties can differ: exact.
fn cases() -> Vec<Case> {
    [
        (1, 3, 64, 1.0),
        (5, 64, 64, 1e6),
        (2, 300, 320, 1e-30),
        (3, 1030, 1088, 0.1),
        (2, 8, 16, 0.0),
    ]
    .map(|(rows, cols, stride, scale): (u32, u32, u32, f32)| {
        let params = HalfRowsParams {
            rows,
            cols,
            stride,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(rows * cols));
        Case::new(
            format!("{rows} × {cols} in {stride}, {scale}"),
            &params,
            0.0,
        )
        .bind(&rng.floats((rows * cols) as usize, scale))
        .bind(&vec![f16::NAN; (rows * stride) as usize])
        .bind(&vec![f32::NAN; rows as usize])
    })
    .into()
}
