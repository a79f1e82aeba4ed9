//! `conv1d_f16`: `y[c][t] = bias[c] + Σ weight[c][i][k] * x[i][t * stride + k - padding]`.
//!
//! x is (in_channels, in_length) and zero outside; weight is (out_channels, in_channels, kernel_size)
//! in half. `FC_GELU` applies the exact GELU, `FC_TIME_MAJOR` writes `y[t][c]`. One threadgroup for
//! 128 steps and 8 channels.

use akunu_types::SharedStruct;
use akunu_types::params::Conv1DParams;
use half::f16;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::cost::{Work, multiply_adds};
use crate::extent::bytes;
use crate::kernel::activation::gelu_erf;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("conv1d_f16", ""),
    dtype: None,
    family: Family::Conv,
    source: "conv1d",
    bindings: &[
        read(0, "x", Element::F32),
        read(1, "weight", Element::F16),
        read(2, "bias", Element::F32),
        write(3, "y", Element::F32),
    ],
    params_index: 4,
    params: Conv1DParams::LAYOUT,
    constants: &[Constant::Gelu, Constant::TimeMajor],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

/// Steps of a threadgroup, one a thread.
const STEPS: u32 = 128;
/// Channels of a threadgroup.
const CHANNELS: u32 = 8;

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: Conv1DParams = args.params();
    let grid = [
        p.out_length.div_ceil(STEPS),
        p.out_channels.div_ceil(CHANNELS),
        1,
    ];
    Launch::new(grid, [STEPS, 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: Conv1DParams = args.params();
    vec![
        bytes::<f32>(&[p.in_channels, p.in_length]),
        bytes::<f16>(&[p.out_channels, p.in_channels, p.kernel_size]),
        bytes::<f32>(&[p.out_channels]),
        bytes::<f32>(&[p.out_channels, p.out_length]),
    ]
}

/// A multiplication and an addition for each weight and step.
fn work(args: &Args, once: Work) -> Work {
    let p: Conv1DParams = args.params();
    let counts = [p.out_channels, p.in_channels, p.kernel_size, p.out_length];
    once.with_flops(multiply_adds(&counts))
}

fn twin(t: &mut Twin) {
    let p: Conv1DParams = t.params();
    let constants = t.constants();
    let (x, weight, bias) = (t.read::<f32>(0), t.read::<f16>(1), t.read::<f32>(2));
    let (out_channels, out_length) = (p.out_channels as usize, p.out_length as usize);
    for (at, y) in t.write::<f32>(3).iter_mut().enumerate() {
        let (channel, step) = if constants.bool(Constant::TimeMajor) {
            (at % out_channels, at / out_channels)
        } else {
            (at / out_length, at % out_length)
        };
        let mut sum = bias[channel];
        for i in 0..p.in_channels as usize {
            for k in 0..p.kernel_size as usize {
                let tap = (channel * p.in_channels as usize + i) * p.kernel_size as usize + k;
                sum += weight[tap].to_f32() * input(&p, x, i, step, k);
            }
        }
        *y = if constants.bool(Constant::Gelu) {
            gelu_erf(sum)
        } else {
            sum
        };
    }
}

/// What tap k of a window sees of an input channel: zero outside.
fn input(p: &Conv1DParams, x: &[f32], channel: usize, step: usize, k: usize) -> f32 {
    let in_length = p.in_length as usize;
    let padded = step * p.stride as usize + k;
    match padded.checked_sub(p.padding as usize) {
        Some(at) if at < in_length => x[channel * in_length + at],
        _ => 0.0,
    }
}

fn cases() -> Vec<Case> {
    let none = Constants::none;
    let gelu = || none().with_bool(Constant::Gelu, true);
    let both = || gelu().with_bool(Constant::TimeMajor, true);
    let off = none()
        .with_bool(Constant::Gelu, false)
        .with_bool(Constant::TimeMajor, false);
    // [in_channels, out_channels, kernel_size, stride, in_length, padding]
    vec![
        case("one of everything", [1, 1, 1, 1, 1, 0], none()),
        case("Whisper's first", [20, 10, 3, 1, 150, 1], gelu()),
        case("Whisper's second", [24, 17, 3, 2, 131, 1], both()),
        case("wide, strided, unpadded", [3, 8, 7, 3, 400, 0], off),
        case("more padding than input", [2, 3, 5, 1, 2, 4], none()),
    ]
}

/// f32 sums of at most 72 products in another order, about 1e-6 relative, and erf within 5e-7.
fn case(label: &str, shape: [u32; 6], constants: Constants) -> Case {
    let [
        in_channels,
        out_channels,
        kernel_size,
        stride,
        in_length,
        padding,
    ] = shape;
    let params = Conv1DParams {
        in_channels,
        out_channels,
        kernel_size,
        stride,
        in_length,
        out_length: (in_length + 2 * padding - kernel_size) / stride + 1,
        padding,
        ..Default::default()
    };
    let mut rng = Rng::new(u64::from(in_length));
    let n_weights = (out_channels * in_channels * kernel_size) as usize;
    Case::new(label, &params, 1e-11)
        .constants(constants)
        .bind(&rng.floats((in_channels * in_length) as usize, 2.0))
        .bind(&rng.halves(n_weights, 0.5))
        .bind(&rng.floats(out_channels as usize, 1.0))
        .bind(&vec![f32::NAN; (out_channels * params.out_length) as usize])
}
