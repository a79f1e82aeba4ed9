//! `expert_gate_<format>`: `y[r][i][n] = gate(Wgate[e][n] · x[r], Wup[e][n] · x[r])`, `e = ids[r][i]`: the first two products of
//! the experts that a row uses, and the activation between them.
//!
//! Products are multiplied by the scale of their expert and get its bias before the gate. An id beyond the experts is the last
//! one. A SIMD group computes two outputs.

use akunu_types::params::ExpertParams;
use akunu_types::{DType, SharedStruct};

use super::products::{Experts, SHAPES, Shape, bind, case_of, constants, dot, gate, ids};
use crate::case::Case;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::bytes;
use crate::table::{Args, Binding, Element, Family, KernelRow, read, write};
use crate::twin::Twin;

/// Outputs of a SIMD group.
const OUTPUTS: u32 = 2;

const BINDINGS: &[Binding] = &[
    read(0, "x", Element::F32),
    read(1, "ids", Element::U32),
    read(2, "gate", Element::Weight),
    read(3, "up", Element::Weight),
    read(4, "gate_bias", Element::F32),
    read(5, "up_bias", Element::F32),
    read(6, "gate_scale", Element::F32),
    read(7, "up_scale", Element::F32),
    write(8, "y", Element::F32),
];

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("expert_gate_", ""),
        dtype: Some(dtype),
        family: Family::Experts,
        source: "expert_gate",
        bindings: BINDINGS,
        params_index: 9,
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
    let (bias, scale) = (experts.bias_bytes(), experts.scale_bytes());
    vec![
        bytes::<f32>(&[p.n_rows, p.K]),
        bytes::<u32>(&[p.n_rows, p.n_used]),
        experts.weight_bytes(&experts.first),
        experts.weight_bytes(&experts.second),
        bias,
        bias,
        scale,
        scale,
        bytes::<f32>(&[p.n_rows, p.n_used, p.N]),
    ]
}

fn work(args: &Args, once: Work) -> Work {
    let experts = Experts::of(args);
    let p = &experts.params;
    once.with(2, Traffic::read(experts.read_bytes(&experts.first)))
        .with(3, Traffic::read(experts.read_bytes(&experts.second)))
        .with_flops(multiply_adds(&[2, p.n_rows, p.n_used, p.N, p.K]))
}

fn twin(t: &mut Twin) {
    let experts = Experts::of(&t.args());
    let p = &experts.params;
    let (x, ids) = (t.read::<f32>(0), t.read::<u32>(1));
    let (gates, ups) = (t.read::<u8>(2), t.read::<u8>(3));
    let [gate_bias, up_bias, gate_scale, up_scale] = [4, 5, 6, 7].map(|at| t.read::<f32>(at));
    let act = gate(p.activation);
    let results = t.write::<f32>(8).chunks_exact_mut(p.N.max(1) as usize);
    for (result, y) in results.enumerate() {
        let x = &x[result / p.n_used as usize * p.K as usize..][..p.K as usize];
        let expert = experts.expert(ids, result);
        for (n, y) in y.iter_mut().enumerate() {
            let row = experts.row(expert, n);
            let gate = dot(&experts.first, gates, row, x);
            let up = dot(&experts.second, ups, row, x);
            *y = act(
                experts.finished(gate, [expert, n], gate_bias, gate_scale),
                experts.finished(up, [expert, n], up_bias, up_scale),
            );
        }
    }
}

/// The gate passes on the errors of two products as relative ones, and where it is clamped none: as those of products, 1e-10.
const NMSE: f64 = 1e-10;

fn case(dtype: DType, at: usize, shape: Shape) -> Case {
    let (params, mut rng) = case_of(dtype, at, shape);
    let row = row(dtype);
    let case = Case::new(format!("{shape:?}"), &params, NMSE);
    let args = row.args(bytemuck::bytes_of(&params), &case.constants);
    let experts = Experts::of(&args);
    let required = required(&args);
    // Where a gate is far below zero its error is a large share of nearly nothing.
    let x = rng.floats((params.n_rows * params.K) as usize, 0.05);
    let mut filled = case.clone().bind(&x).bind(&ids(&params, &mut rng));
    for weight in [experts.first, experts.second] {
        filled = filled.bind(&weight.random(&mut rng));
    }
    for bytes in &required[4..8] {
        filled = bind(filled, *bytes, &mut rng);
    }
    filled.bind(&vec![f32::NAN; required[8] / size_of::<f32>()])
}
