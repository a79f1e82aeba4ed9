//! `gelu_erf_f32`: `x[i] = x[i] * (1 + erf(x[i] / √2)) / 2`, in place.
//!
//! The exact GELU of Whisper and BERT. One thread for four elements. The shader's erf is an
//! approximation within 5e-7; the twin's is exact.

use akunu_types::params::ElementwiseParams;

use super::{awkward_inputs, gelu_erf};
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ElementwiseParams at 1) {
        x: change f32 = [p.count],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("gelu_erf_f32", ""),
    family: Family::Activation,
    source: "gelu_erf",
    launch,
    twin,
    cases: |_| cases(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    Launch::elementwise4(args.params::<ElementwiseParams>().count)
}

fn twin(t: &mut Twin) {
    let Slices { x } = Slices::of(t);
    for x in x {
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
