//! `short_conv_f32`: a causal convolution of each channel over the last tokens of its sequence.
//!
//! ```text
//! s[r] = Σ_t weight[c][t] * u[r - (taps - 1) + t][c] + bias[c]
//! to = silu(s), u = x      or      to = c * s, u = b * x      or      to = s, u = x
//! ```
//!
//! The state holds u of the last `taps - 1` tokens, the oldest first. A row behind as many rows of its own sequence finds them in
//! the step, and needs none.

use akunu_types::params::{Row, ShortConvParams};

use super::{loaded, store};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, product, strided};
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

/// Tokens that a result depends on, at most.
pub const MAX_TAPS: u32 = 4;

/// The values of [`ShortConvParams::form`]: `silu(s)`, `c * s`, s.
pub const SILU: u32 = 0;
/// See [`SILU`].
pub const GATED: u32 = 1;
/// See [`SILU`].
pub const PLAIN: u32 = 2;

buffers! {
    pub struct Buffers, Slices(p: ShortConvParams at 6) {
        x: read f32 = strided(p.n_rows, p.stride, width_of_x(&p)),
        weight: read f32 = [p.width, p.taps],
        bias: read f32 = [p.width * u32::from(p.has_bias != 0)],
        rows: read Row = [p.n_rows],
        states: change f32 = states_len(&p),
        to: change f32 = [p.n_rows, p.width],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("short_conv_f32", ""),
    family: Family::State,
    source: "short_conv",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: ShortConvParams = args.params();
    let Launch { grid, threads, .. } = Launch::elementwise(p.width, chip);
    Launch::new([grid[0], p.n_rows, 1], threads)
}

/// Elements of a row of x.
fn width_of_x(p: &ShortConvParams) -> u32 {
    match p.form {
        GATED => p.width.saturating_mul(3),
        _ => p.width,
    }
}

/// Taps that no thread has room for make the buffer larger than any.
fn states_len(p: &ShortConvParams) -> usize {
    match p.taps {
        2..=MAX_TAPS => product(&[p.n_blocks, p.taps - 1, p.width]),
        _ => usize::MAX,
    }
}

/// At most a state a row, and never more than there are.
fn work(args: &Args, once: Work) -> Work {
    let p: ShortConvParams = args.params();
    let to = bytes::<f32>(&[p.n_rows, p.width]);
    let blocks = p.n_rows.min(p.n_blocks);
    let states = bytes::<f32>(&[blocks, p.taps.saturating_sub(1), p.width]);
    once.with(Buffers::PLACES.to, Traffic::written(to))
        .with(Buffers::PLACES.states, Traffic::both(states))
        .with_flops(multiply_adds(&[p.n_rows, p.taps, p.width]))
}

fn twin(t: &mut Twin) {
    let p: ShortConvParams = t.params();
    let b = Slices::of(t);
    let (width, taps) = (p.width as usize, p.taps as usize);
    for (at, row) in b.rows.iter().enumerate().filter(|(_, row)| row.is_active()) {
        let x = &b.x[at * p.stride as usize..][..width_of_x(&p) as usize];
        let input = |channel: usize| match p.form {
            GATED => x[channel] * x[2 * width + channel],
            _ => x[channel],
        };
        let mut window = loaded(b.states, (taps - 1) * width, row);
        window.extend((0..width).map(input));
        for channel in 0..width {
            let weight = &b.weight[channel * taps..][..taps];
            let mut sum = 0.0;
            for (weight, u) in weight.iter().zip(window[channel..].iter().step_by(width)) {
                sum += weight * u;
            }
            if p.has_bias != 0 {
                sum += b.bias[channel];
            }
            b.to[at * width + channel] = match p.form {
                GATED => x[width + channel] * sum,
                PLAIN => sum,
                _ => sum / (1.0 + (-sum).exp()),
            };
        }
        store(b.states, &window[width..], row);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::state::awkward::{N_BLOCKS, Step, steps};

    /// All forms, each number of taps, rows of x with and without something behind them, on every awkward step.
    pub fn all() -> Vec<Case> {
        let shapes = [
            Shape {
                width: 64,
                taps: 3,
                form: GATED,
                has_bias: false,
                stride: 192,
            },
            Shape {
                width: 71,
                taps: 4,
                form: SILU,
                has_bias: true,
                stride: 75,
            },
            Shape {
                width: 300,
                taps: 2,
                form: GATED,
                has_bias: true,
                stride: 900,
            },
            Shape {
                width: 96,
                taps: 2,
                form: PLAIN,
                has_bias: false,
                stride: 96,
            },
            Shape {
                width: 1,
                taps: 4,
                form: SILU,
                has_bias: false,
                stride: 1,
            },
        ];
        let of_shape = |shape| steps().into_iter().map(move |step| case(shape, step));
        shapes.into_iter().flat_map(of_shape).collect()
    }

    #[derive(Clone, Copy)]
    struct Shape {
        width: u32,
        taps: u32,
        form: u32,
        has_bias: bool,
        stride: u32,
    }

    /// A few products of each element, added in the same order, and one exponential.
    fn case(shape: Shape, step: Step) -> Case {
        let params = ShortConvParams {
            n_rows: step.rows.len() as u32,
            stride: shape.stride,
            width: shape.width,
            taps: shape.taps,
            n_blocks: N_BLOCKS,
            form: shape.form,
            has_bias: u32::from(shape.has_bias),
            ..Default::default()
        };
        let Shape { width, taps, .. } = shape;
        let mut rng = Rng::new(u64::from(width + taps));
        let n_rows = step.rows.len();
        let state = (N_BLOCKS * (taps - 1) * width) as usize;
        let form = ["silu", "gated", "plain"][shape.form as usize];
        Case::new(
            format!("{}, {width} x {taps}, {form}", step.label),
            &params,
            1e-12,
        )
        .bind(&rng.floats(n_rows * shape.stride as usize, 1.0))
        .bind(&rng.floats((width * taps) as usize, 1.0))
        .bind(&rng.floats(if shape.has_bias { width as usize } else { 0 }, 1.0))
        .bind(&step.rows)
        .bind(&rng.floats(state, 1.0))
        .bind(&rng.floats(n_rows * width as usize, 1.0))
    }
}
