//! `grammar_bitmask_f32`: `logits[i] = -inf` where bit `i % 32` of `mask[i / 32]` is 0, in place.

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
    name: ("grammar_bitmask_f32", ""),
    dtype: None,
    family: Family::Sampling,
    source: "grammar_bitmask",
    bindings: &[
        read_write(0, "logits", Element::F32),
        read(1, "mask", Element::U32),
    ],
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
    Launch::elementwise(args.params::<ElementwiseParams>().count)
}

fn required(args: &Args) -> Vec<usize> {
    let count = args.params::<ElementwiseParams>().count;
    vec![bytes::<f32>(&[count]), bytes::<u32>(&[count.div_ceil(32)])]
}

fn twin(t: &mut Twin) {
    let mask = t.read::<u32>(1);
    for (i, logit) in t.write::<f32>(0).iter_mut().enumerate() {
        if mask[i / 32] >> (i % 32) & 1 == 0 {
            *logit = f32::NEG_INFINITY;
        }
    }
}

/// Elements stay or become -inf: exact.
fn cases() -> Vec<Case> {
    let counts = [1u32, 31, 32, 33, 1000].into_iter();
    counts
        .map(|count| {
            let mut rng = Rng::new(u64::from(count));
            let logits = rng.floats(count as usize, 5.0);
            let mask: Vec<u32> = (0..count.div_ceil(32)).map(|_| rng.bits() as u32).collect();
            let params = ElementwiseParams {
                count,
                ..Default::default()
            };
            Case::new(format!("count {count}"), &params, 0.0)
                .bind(&logits)
                .bind(&mask)
        })
        .collect()
}
