//! `gelu_erf_f32`: `x[i] = x[i] * (1 + erf(x[i] / √2)) / 2`, in place; `gelu_f32`: the same by the tanh form.
//!
//! `relu_squared_f32`: `x[i] = max(x[i], 0)²`, in place.
//!
//! The exact GELU of Whisper and BERT, the tanh form of StarCoder 2, the squared ReLU of Arcee and Nemotron. One thread for four elements. The shader's erf is an
//! approximation within 5e-7; the twin's is exact.

use akunu_types::params::ElementwiseParams;

use super::{gelu, gelu_erf, relu_squared};
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ElementwiseParams at 1) {
        x: change f32 = [p.count],
    }
}

/// The row of the exact GELU.
pub const GELU_ERF: KernelRow = row("gelu_erf_f32", |t| twin(t, gelu_erf));
/// The row of its tanh form.
pub const GELU: KernelRow = row("gelu_f32", |t| twin(t, gelu));
/// The row of the squared ReLU.
pub const RELU_SQUARED: KernelRow = row("relu_squared_f32", |t| twin(t, relu_squared));

const fn row(name: &'static str, twin: fn(&mut Twin)) -> KernelRow {
    KernelRow {
        name: (name, ""),
        family: Family::Activation,
        source: "activate",
        launch,
        twin,
        #[cfg(feature = "testing")]
        cases: |_| cases::all(),
        ..KernelRow::of::<Buffers<()>>()
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    Launch::elementwise4(args.params::<ElementwiseParams>().count, chip)
}

fn twin(t: &mut Twin, function: fn(f32) -> f32) {
    let Slices { x } = Slices::of(t);
    for x in x {
        *x = function(*x);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::kernel::activation::cases::awkward_inputs;

    pub fn all() -> Vec<Case> {
        let mut rng = Rng::new(7);
        let ordinary = rng.floats(1538, 5.0);
        let small = rng.floats(7, 1e-3);
        let awkward = awkward_inputs(13);
        vec![
            case("ordinary, count 1538", &ordinary),
            case("near zero, count 7", &small),
            case("all magnitudes, count 13", &awkward),
        ]
    }

    /// The approximation of erf is off by at most 5e-7 of values around 1: 2.5e-13 squared, and a little
    /// more near zero, where 1 + erf is 1 and the error stays the same share. The tanh form has an exponent of up to 25, which is rounded
    /// by 2e-6: 4e-12 squared.
    fn case(label: &str, x: &[f32]) -> Case {
        let params = ElementwiseParams {
            count: x.len() as u32,
            ..Default::default()
        };
        Case::new(label, &params, 1e-11).bind(x)
    }
}
