//! `f16_to_f32`: `y[i] = x[i]`. The other direction is `dequant_f32_f16`.

use akunu_types::SharedStruct;
use akunu_types::params::ElementwiseParams;
use half::f16;

use crate::case::{Case, Rng};
use crate::cost::once;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("f16_to_f32", ""),
    dtype: None,
    family: Family::Convert,
    source: "f16_to_f32",
    bindings: &[read(0, "x", Element::F16), write(1, "y", Element::F32)],
    params_index: 2,
    params: ElementwiseParams::LAYOUT,
    constants: &[],
    launch: |args, _| Launch::elementwise(args.params::<ElementwiseParams>().count),
    required,
    work: once,
    twin,
    cases: |_| [1, 255, 1000].into_iter().map(case).collect(),
};

fn required(args: &Args) -> Vec<usize> {
    let count = args.params::<ElementwiseParams>().count as usize;
    vec![count * 2, count * 4]
}

fn twin(t: &mut Twin) {
    let x = t.read::<f16>(0);
    for (y, x) in t.write::<f32>(1).iter_mut().zip(x) {
        *y = x.to_f32();
    }
}

/// Any bits, NaN, infinities and subnormals among them; the conversion is exact.
fn case(count: u32) -> Case {
    let mut rng = Rng::new(u64::from(count));
    let params = ElementwiseParams {
        count,
        ..Default::default()
    };
    let x: Vec<f16> = (0..count)
        .map(|_| f16::from_bits(rng.bits() as u16))
        .collect();
    Case::new(format!("count {count}"), &params, 0.0)
        .bind(&x)
        .bind(&vec![0f32; count as usize])
}
