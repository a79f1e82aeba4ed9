//! `halves_f32`: `y[i] = x[i]` as a half, rounded to the nearest.
//!
//! For what is written once and read by every token: the keys and values of an encoder.

use akunu_types::SharedStruct;
use akunu_types::params::ElementwiseParams;
use half::f16;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("halves_f32", ""),
    dtype: None,
    family: Family::Convert,
    source: "halves",
    bindings: &[read(0, "x", Element::F32), write(1, "y", Element::F16)],
    params_index: 2,
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
    let count = args.params::<ElementwiseParams>().count;
    vec![bytes::<f32>(&[count]), bytes::<f16>(&[count])]
}

fn twin(t: &mut Twin) {
    let x = t.read::<f32>(0);
    for (y, x) in t.write::<f16>(1).iter_mut().zip(x) {
        *y = f16::from_f32(*x);
    }
}

/// Whole vectors and not, and numbers that only a half's smallest steps hold. All round alike: exact.
fn cases() -> Vec<Case> {
    [(1, 1.0), (1538, 100.0), (2048, 1e-3), (7, 6e4)]
        .map(|(count, scale): (u32, f32)| {
            let params = ElementwiseParams {
                count,
                ..Default::default()
            };
            let mut rng = Rng::new(u64::from(count));
            Case::new(format!("{count} up to {scale}"), &params, 0.0)
                .bind(&rng.floats(count as usize, scale))
                .bind(&vec![f16::NAN; count as usize])
        })
        .into()
}
