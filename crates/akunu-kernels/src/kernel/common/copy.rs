//! `copy_f32`: `y[i] = x[i]`.

use akunu_types::SharedStruct;
use akunu_types::params::ElementwiseParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("copy_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "copy",
    bindings: &[read(0, "x", Element::F32), write(1, "y", Element::F32)],
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
    vec![bytes::<f32>(&[args.params::<ElementwiseParams>().count]); 2]
}

fn twin(t: &mut Twin) {
    let x = t.read::<f32>(0);
    t.store(1, x);
}

/// Values are only moved: exact.
fn cases() -> Vec<Case> {
    let counts = [1u32, 5, 640, 1026].into_iter();
    let case = |count: u32| {
        let params = ElementwiseParams {
            count,
            ..Default::default()
        };
        Case::new(format!("count {count}"), &params, 0.0)
            .bind(&Rng::new(u64::from(count)).floats(count as usize, 9.0))
            .bind(&vec![f32::NAN; count as usize])
    };
    counts.map(case).collect()
}
