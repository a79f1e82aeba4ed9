//! `residual_add_f32`: `h[i] += x[i]`.

use akunu_types::SharedStruct;
use akunu_types::params::ElementwiseParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("residual_add_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "vector_add",
    bindings: &[read_write(0, "h", Element::F32), read(1, "x", Element::F32)],
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
    let x = t.read::<f32>(1);
    for (h, x) in t.write::<f32>(0).iter_mut().zip(x) {
        *h += x;
    }
}

/// One addition each: exact.
fn cases() -> Vec<Case> {
    let counts = [1u32, 2, 576, 1027, 2304].into_iter();
    counts
        .map(|count| {
            let mut rng = Rng::new(u64::from(count));
            let params = ElementwiseParams {
                count,
                ..Default::default()
            };
            Case::new(format!("count {count}"), &params, 0.0)
                .bind(&rng.floats(count as usize, 1e4))
                .bind(&rng.floats(count as usize, 1.0))
        })
        .collect()
}
