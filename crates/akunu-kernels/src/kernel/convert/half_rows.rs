//! `half_rows_f32`: `y[r][i] = x[r][i] / factor[r]` as halves, where `factor[r]` is the largest power of two that is not
//! above the largest `|x[r][i]|`. `norm_half_rows_f32`, `silu_half_rows_f32` and `gelu_half_rows_f32` do the same with the
//! result of a norm and of a gate, which nothing else reads.
//!
//! What tensor cores read. Activations exceed what a half can hold (65504) in some models; with a factor for each row the
//! largest number of a row is between 1 and 2, and what is rounded away is 2⁻¹² of a number, or 2⁻²⁵ of the row's largest.
//! Behind the elements of a row there are zeros, up to where the next row begins.
//!
//! In tiles, eight rows share the place of eight rows, in the order in which [`decode_gemm`](crate::kernel::nvidia::decode_gemm)
//! and [`async_gemm`](crate::kernel::nvidia::async_gemm) read them ([`Order`]).

use akunu_types::params::HalfRowsParams;
use half::f16;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::kernel::activation::{gelu, silu};
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: HalfRowsParams at 3) {
        x: read f32 = [p.rows, p.cols],
        y: write f16 = [Order::of(&p).rows(p.rows), p.stride],
        factor: write f32 = [p.rows],
    }
}

buffers! {
    /// With a norm.
    pub struct NormBuffers, NormSlices(p: HalfRowsParams at 4) {
        x: read f32 = [p.rows, p.cols],
        gain: read f32 = [p.cols],
        y: write f16 = [Order::of(&p).rows(p.rows), p.stride],
        factor: write f32 = [p.rows],
    }
}

buffers! {
    /// With a gate.
    pub struct GateBuffers, GateSlices(p: HalfRowsParams at 4) {
        gate: read f32 = [p.rows, p.cols],
        up: read f32 = [p.rows, p.cols],
        y: write f16 = [Order::of(&p).rows(p.rows), p.stride],
        factor: write f32 = [p.rows],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("half_rows_f32", ""),
    family: Family::Convert,
    source: "half_rows",
    launch,
    twin: |t| {
        let p = t.params();
        let Slices { x, y, factor } = Slices::of(t);
        halve(&p, x, y, factor);
    },
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// The row of the kernel that normalises rows before.
pub const NORM: KernelRow = KernelRow {
    name: ("norm_half_rows_f32", ""),
    family: Family::Convert,
    source: "half_rows",
    launch,
    twin: |t| {
        let p: HalfRowsParams = t.params();
        let NormSlices { x, gain, y, factor } = NormSlices::of(t);
        let mut normed = vec![0.0; x.len()];
        let cols = p.cols.max(1) as usize;
        for (normed, x) in normed.chunks_exact_mut(cols).zip(x.chunks_exact(cols)) {
            rmsnorm(x, gain, p.eps, normed);
        }
        halve(&p, &normed, y, factor);
    },
    #[cfg(feature = "testing")]
    cases: |_| cases::of_two(1),
    ..KernelRow::of::<NormBuffers<()>>()
};

/// The row of the kernel that gates with SiLU before.
pub const SILU: KernelRow = gated("silu_half_rows_f32", |t| halve_gated(t, silu));

/// The row of the kernel that gates with GELU before.
pub const GELU: KernelRow = gated("gelu_half_rows_f32", |t| halve_gated(t, gelu));

const fn gated(name: &'static str, twin: fn(&mut Twin)) -> KernelRow {
    KernelRow {
        name: (name, ""),
        family: Family::Convert,
        source: "half_rows",
        launch,
        twin,
        #[cfg(feature = "testing")]
        cases: |_| cases::of_two(u32::MAX),
        ..KernelRow::of::<GateBuffers<()>>()
    }
}

fn halve_gated(t: &mut Twin, act: fn(f32) -> f32) {
    let p = t.params();
    let GateSlices {
        gate,
        up,
        y,
        factor,
    } = GateSlices::of(t);
    let x: Vec<f32> = gate.iter().zip(up).map(|(g, up)| act(*g) * up).collect();
    halve(&p, &x, y, factor);
}

/// A row is read twice, the second time from cache.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: HalfRowsParams = args.params();
    let threads = p.stride.div_ceil(4).clamp(1, chip.max_threads.min(1024));
    Launch::new([p.rows, 1, 1], [threads.next_multiple_of(SIMD_WIDTH), 1, 1])
}

/// Rows of a tile.
pub const TILE: u32 = 8;

/// How halves lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One row behind the other.
    Rows,
    /// In tiles of eight rows: of each 128 elements, vectors of eight, one for each of four spans of 32 in each of eight rows, and
    /// that four times.
    Spans,
    /// In tiles of eight rows: of each 128 elements 16 columns, a vector for each row, with two neighbours of each of four spans.
    Columns,
}

impl Order {
    fn of(p: &HalfRowsParams) -> Order {
        Order::of_code(p.order)
    }

    /// What [`code`](Order::code) stands for.
    pub fn of_code(code: u32) -> Order {
        match code {
            0 => Order::Rows,
            1 => Order::Spans,
            _ => Order::Columns,
        }
    }

    /// As the kernels know it.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Rows that there is memory for: tiles are whole.
    pub fn rows(self, rows: u32) -> u32 {
        match self {
            Order::Rows => rows,
            Order::Spans | Order::Columns => rows.next_multiple_of(TILE),
        }
    }

    /// Where element `i` of a row lies, where rows are `stride` apart.
    pub fn place(self, stride: usize, row: usize, i: usize) -> usize {
        let tile = TILE as usize;
        let in_tile = row % tile;
        let block = (row - in_tile) * stride + i / 128 * 1024;
        let span = i / 32 % 4;
        match self {
            Order::Rows => row * stride + i,
            Order::Spans => block + (i / 8 % 4 * 32 + in_tile * 4 + span) * 8 + i % 8,
            Order::Columns => block + (i % 32 / 2 * 8 + in_tile) * 8 + 2 * span + i % 2,
        }
    }
}

/// Halves of x to y, and the factor of each row.
fn halve(p: &HalfRowsParams, x: &[f32], y: &mut [f16], factors: &mut [f32]) {
    let order = Order::of(p);
    for (row, x) in x.chunks_exact(p.cols.max(1) as usize).enumerate() {
        let largest = x.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        let factor = power_of_two(largest);
        factors[row] = factor;
        for i in 0..p.stride as usize {
            let x = x.get(i).copied().unwrap_or_default();
            y[order.place(p.stride as usize, row, i)] = f16::from_f32(x / factor);
        }
    }
}

/// The largest power of two up to x, at least 2⁻¹⁰⁰: a row of zeros has that.
fn power_of_two(x: f32) -> f32 {
    const LEAST: u32 = 27 << 23;
    f32::from_bits((x.to_bits() & 0x7f80_0000).max(LEAST))
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    /// Rows, elements of a row and of one with its zeros, the size of numbers, and how they lie.
    type Shape = (u32, u32, u32, f32, Order);

    /// Rows shorter and longer than the threads, and than what they keep; of whole vectors and not, with and without zeros behind them;
    /// numbers that no half holds, and none but zeros; tiles, the last of which is not full. Only the rounding of ties can differ:
    /// exact.
    pub fn all() -> Vec<Case> {
        let shapes = [
            (1, 3, 64, 1.0, Order::Rows),
            (5, 64, 64, 1e6, Order::Rows),
            (2, 300, 320, 1e-30, Order::Rows),
            (3, 1030, 1088, 0.1, Order::Rows),
            (2, 8, 16, 0.0, Order::Rows),
            (1, 16_400, 16_448, 1.0, Order::Rows),
            (9, 300, 384, 1.0, Order::Spans),
            (8, 130, 256, 1e6, Order::Spans),
            (9, 300, 384, 1.0, Order::Columns),
            (8, 130, 256, 1e6, Order::Columns),
        ];
        shapes.map(|shape| case(shape, None, 0.0)).into()
    }

    /// Rows of whole vectors and not, in tiles and not; the second input has at most `most_rows`. Norms and gates are rounded in
    /// another order, so that a few halves are their neighbours: 1e-10 or less.
    pub fn of_two(most_rows: u32) -> Vec<Case> {
        let shapes = [
            (3, 37, 64, 1.0, Order::Rows),
            (2, 1024, 1024, 20.0, Order::Rows),
            (1, 16_400, 16_448, 1.0, Order::Rows),
            (9, 300, 384, 1.0, Order::Spans),
            (9, 300, 384, 1.0, Order::Columns),
        ];
        let of_two = |shape: Shape| case(shape, Some(shape.0.min(most_rows)), 1e-8);
        shapes.map(of_two).into()
    }

    /// One of them, with a second input of so many rows, if any.
    fn case(shape: Shape, rows_of_second: Option<u32>, nmse: f64) -> Case {
        let (rows, cols, stride, scale, order) = shape;
        let params = HalfRowsParams {
            rows,
            cols,
            stride,
            order: order.code(),
            eps: 1e-5,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(rows * cols));
        let label = format!("{rows} × {cols} in {stride}, {scale}, {order:?}");
        let x = rng.floats((rows * cols) as usize, scale);
        let mut case = Case::new(label, &params, nmse).bind(&x);
        if let Some(rows) = rows_of_second {
            case = case.bind(&rng.floats((rows * cols) as usize, 1.0));
        }
        let n_halves = order.rows(rows) * stride;
        case.bind(&vec![f16::NAN; n_halves as usize])
            .bind(&vec![f32::NAN; rows as usize])
    }
}
