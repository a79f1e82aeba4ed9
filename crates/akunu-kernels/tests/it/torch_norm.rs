//! The twins of norms, activations and the convolution against figures of torch.
//!
//! `fixtures/make_norm_fixtures.py` computed the figures in float64; the twins compute in f32.

use akunu_kernels::KernelId;
use akunu_kernels::case::Case;
use akunu_kernels::kernel::activation::gelu_erf;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{Device, Matrix, MlxLayout, Op, Program, Windows, op};
use akunu_types::DType;
use akunu_types::params::{ElementwiseParams, LayerNormParams};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixtures {
    layer_norm: Vec<LayerNorm>,
    activation: Vec<Activation>,
    conv: Vec<Conv>,
}

#[derive(Deserialize)]
struct LayerNorm {
    rows: u32,
    cols: u32,
    eps: f32,
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    y: Vec<f32>,
}

#[derive(Deserialize)]
struct Activation {
    name: String,
    x: Vec<f32>,
    y: Vec<f32>,
}

#[derive(Deserialize)]
struct Conv {
    in_channels: u32,
    out_channels: u32,
    kernel_size: u32,
    stride: u32,
    in_length: u32,
    out_length: u32,
    padding: u32,
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    y: Vec<f32>,
}

fn fixtures() -> Fixtures {
    serde_json::from_str(include_str!("../fixtures/torch_norm.json")).expect("the fixture is JSON")
}

/// What the twin writes first.
fn output(kernel: KernelId, case: &Case) -> Vec<f32> {
    let written = case.expected(&kernel.row());
    bytemuck::cast_slice(written[0].1.as_ref()).to_vec()
}

/// Values of about 1 in f32, sums of up to 64: five digits are safe, a wrong formula is far off.
fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (f, e)) in found.iter().zip(expected).enumerate() {
        let allowed = tolerance * e.abs().max(1.0);
        assert!(
            (f - e).abs() <= allowed,
            "{what}, element {at}: {f} instead of {e}"
        );
    }
}

#[test]
fn layer_norm() {
    for fixture in fixtures().layer_norm {
        let params = LayerNormParams {
            dim: fixture.cols,
            eps: fixture.eps,
            n_rows: fixture.rows,
            ..Default::default()
        };
        let case = Case::new("torch", &params, 0.0)
            .bind(&fixture.x)
            .bind(&fixture.weight)
            .bind(&fixture.bias)
            .bind(&vec![0f32; fixture.y.len()]);
        // A mean of 50 costs two digits.
        assert_close(
            "layer norm",
            &output(KernelId::LayerNorm, &case),
            &fixture.y,
            2e-5,
        );
    }
}

#[test]
fn activations() {
    for fixture in fixtures().activation {
        let params = ElementwiseParams {
            count: fixture.x.len() as u32,
            ..Default::default()
        };
        let case = Case::new("torch", &params, 0.0).bind(&fixture.x);
        let ones = vec![1f32; fixture.x.len()];
        let gated = case.clone().bind(&ones).bind(&ones);
        let found = match fixture.name.as_str() {
            "silu" => output(KernelId::SiluGate, &gated),
            "gelu" => output(KernelId::GeluGate, &gated),
            "gelu_erf" => output(KernelId::GeluErf, &case),
            other => panic!("no kernel computes {other}"),
        };
        assert_close(&fixture.name, &found, &fixture.y, 1e-6);
    }
}

/// A convolution is a product of windows that overlap: with time-major input, zeros beyond both ends, and weights
/// (outputs, window, channels).
#[test]
fn a_convolution_is_a_product_of_windows() {
    for fixture in fixtures().conv {
        let found = convolve(&fixture);
        let found: Vec<f32> = found.into_iter().map(gelu_erf).collect();
        assert_close("convolution", &found, &fixture.y, 1e-5);
    }
}

/// [`Op::Convolve`] on the twins, turned to (channels, time).
fn convolve(f: &Conv) -> Vec<f32> {
    let (channels, taps) = (f.in_channels as usize, f.kernel_size as usize);
    let (length, outputs) = (f.in_length as usize, f.out_channels as usize);
    let padded = length + 2 * f.padding as usize;
    let mut signal = vec![0f32; padded * channels];
    for (at, &x) in f.x.iter().enumerate() {
        let (channel, time) = (at / length, at % length);
        signal[(time + f.padding as usize) * channels + channel] = x;
    }
    let mut weight = vec![0f32; f.weight.len()];
    for (at, &w) in f.weight.iter().enumerate() {
        let (output, channel, tap) = (at / taps / channels, at / taps % channels, at % taps);
        weight[(output * taps + tap) * channels + channel] = w;
    }
    let mut device = TwinDevice::new();
    let mut filled = |numbers: &[f32]| {
        let buffer = device.allocate(4 * numbers.len(), "test").expect("memory");
        let bytes = bytemuck::cast_slice(numbers);
        device.write(buffer, 0, bytes).expect("it fits");
        buffer
    };
    let (x, weight, bias) = (filled(&signal), filled(&weight), filled(&f.bias));
    let to = filled(&vec![f32::NAN; f.y.len()]);
    let ops = vec![Op::Convolve(op::Convolve {
        weight: Matrix {
            place: weight.into(),
            dtype: DType::F32,
            rows: f.out_channels,
            cols: f.kernel_size * f.in_channels,
            mlx: MlxLayout::default(),
        },
        bias: bias.into(),
        x: x.into(),
        windows: Windows {
            count: f.out_length,
            stride: f.stride * f.in_channels,
        },
        to: to.into(),
    })];
    let program = Program {
        ops,
        ..Program::default()
    };
    let plan = device.load(&program).expect("it is sound");
    device.run(plan, None).expect("runs");
    let mut y = vec![0f32; f.y.len()];
    let bytes = bytemuck::cast_slice_mut(&mut y);
    device.read(to, 0, bytes).expect("it is there");
    (0..outputs)
        .flat_map(|output| y[output..].iter().step_by(outputs).copied())
        .collect()
}
