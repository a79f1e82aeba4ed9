//! `vector_add_f32`: `y[i] = a[i] + b[i]`.

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
    name: ("vector_add_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "vector_add",
    bindings: &[
        read(0, "a", Element::F32),
        read(1, "b", Element::F32),
        write(2, "y", Element::F32),
    ],
    params_index: 3,
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
    vec![bytes::<f32>(&[args.params::<ElementwiseParams>().count]); 3]
}

fn twin(t: &mut Twin) {
    let (a, b) = (t.read::<f32>(0), t.read::<f32>(1));
    for (i, y) in t.write::<f32>(2).iter_mut().enumerate() {
        *y = a[i] + b[i];
    }
}

/// One addition each: exact.
fn cases() -> Vec<Case> {
    let counts = [1u32, 5, 640, 1026].into_iter();
    counts
        .map(|count| {
            let mut rng = Rng::new(u64::from(count));
            let params = ElementwiseParams {
                count,
                ..Default::default()
            };
            Case::new(format!("count {count}"), &params, 0.0)
                .bind(&rng.floats(count as usize, 1e-3))
                .bind(&rng.floats(count as usize, 1.0))
                .bind(&vec![f32::NAN; count as usize])
        })
        .collect()
}
