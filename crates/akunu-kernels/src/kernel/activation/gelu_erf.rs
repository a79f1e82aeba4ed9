//! `gelu_erf_f32`: `x[i] = x[i] * (1 + erf(x[i] / √2)) / 2`, in place.
//!
//! The exact GELU of Whisper and BERT. One thread for four elements. The shader's erf is an
//! approximation within 5e-7; the twin's is exact.

use akunu_types::SharedStruct;
use akunu_types::params::ElementwiseParams;

use super::{awkward_inputs, gelu_erf};
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("gelu_erf_f32", ""),
    dtype: None,
    family: Family::Activation,
    source: "gelu_erf",
    bindings: &[read_write(0, "x", Element::F32)],
    params_index: 1,
    params: ElementwiseParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    Launch::elementwise4(args.params::<ElementwiseParams>().count)
}

fn required(args: &Args) -> Vec<usize> {
    vec![bytes::<f32>(&[args.params::<ElementwiseParams>().count])]
}

fn twin(t: &mut Twin) {
    for x in t.write::<f32>(0) {
        *x = gelu_erf(*x);
    }
}

fn cases() -> Vec<Case> {
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
/// more near zero, where 1 + erf is 1 and the error stays the same share.
fn case(label: &str, x: &[f32]) -> Case {
    let params = ElementwiseParams {
        count: x.len() as u32,
        ..Default::default()
    };
    Case::new(label, &params, 1e-12).bind(x)
}
