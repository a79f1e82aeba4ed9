//! `expert_down_<format>`: `y[r][i][n] = W[e][n] · x[r][i]`, `e = ids[r][i]`: the last product of the experts that a row uses.
//!
//! A product is multiplied by the scale of its expert and gets its bias. An id beyond the experts is the last one. A SIMD group
//! computes four outputs.

use akunu_types::params::ExpertParams;
use akunu_types::{DType, SharedStruct};

use super::products::{Experts, SHAPES, Shape, bind, case_of, constants, dot, ids};
use crate::case::Case;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::bytes;
use crate::table::{Args, Binding, Element, Family, KernelRow, read, write};
use crate::twin::Twin;

/// Outputs of a SIMD group.
const OUTPUTS: u32 = 4;

const BINDINGS: &[Binding] = &[
    read(0, "x", Element::F32),
    read(1, "ids", Element::U32),
    read(2, "weight", Element::Weight),
    read(3, "bias", Element::F32),
    read(4, "scale", Element::F32),
    write(5, "y", Element::F32),
];

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("expert_down_", ""),
        dtype: Some(dtype),
        family: Family::Experts,
        source: "expert_down",
        bindings: BINDINGS,
        params_index: 6,
        params: ExpertParams::LAYOUT,
        constants: constants(dtype),
        launch: |args, _| Experts::of(args).launch(OUTPUTS),
        required,
        work,
        twin,
        cases: |dtype| {
            let shapes = SHAPES.into_iter().enumerate();
            let of = |dtype| shapes.map(move |(at, shape)| case(dtype, at, shape));
            dtype.map_or(Vec::new(), |dtype| of(dtype).collect())
        },
    }
}

fn required(args: &Args) -> Vec<usize> {
    let experts = Experts::of(args);
    let p = &experts.params;
    vec![
        bytes::<f32>(&[p.n_rows, p.n_used, p.K]),
        bytes::<u32>(&[p.n_rows, p.n_used]),
        experts.weight_bytes(&experts.first),
        experts.bias_bytes(),
        experts.scale_bytes(),
        bytes::<f32>(&[p.n_rows, p.n_used, p.N]),
    ]
}

fn work(args: &Args, once: Work) -> Work {
    let experts = Experts::of(args);
    let p = &experts.params;
    once.with(2, Traffic::read(experts.read_bytes(&experts.first)))
        .with_flops(multiply_adds(&[p.n_rows, p.n_used, p.N, p.K]))
}

fn twin(t: &mut Twin) {
    let experts = Experts::of(&t.args());
    let p = &experts.params;
    let (x, ids, weight) = (t.read::<f32>(0), t.read::<u32>(1), t.read::<u8>(2));
    let (bias, scale) = (t.read::<f32>(3), t.read::<f32>(4));
    let results = t.write::<f32>(5).chunks_exact_mut(p.N.max(1) as usize);
    for (result, y) in results.enumerate() {
        let x = &x[result * p.K as usize..][..p.K as usize];
        let expert = experts.expert(ids, result);
        for (n, y) in y.iter_mut().enumerate() {
            let product = dot(&experts.first, weight, experts.row(expert, n), x);
            *y = experts.finished(product, [expert, n], bias, scale);
        }
    }
}

/// The sums of products in another order.
const NMSE: f64 = 1e-10;

fn case(dtype: DType, at: usize, shape: Shape) -> Case {
    let (params, mut rng) = case_of(dtype, at, shape);
    let row = row(dtype);
    let case = Case::new(format!("{shape:?}"), &params, NMSE);
    let args = row.args(bytemuck::bytes_of(&params), &case.constants);
    let (experts, required) = (Experts::of(&args), required(&args));
    let x = rng.floats(required[0] / size_of::<f32>(), 1.0);
    let mut filled = case.clone().bind(&x).bind(&ids(&params, &mut rng));
    filled = filled.bind(&experts.first.random(&mut rng));
    for bytes in &required[3..5] {
        filled = bind(filled, *bytes, &mut rng);
    }
    filled.bind(&vec![f32::NAN; required[5] / size_of::<f32>()])
}
