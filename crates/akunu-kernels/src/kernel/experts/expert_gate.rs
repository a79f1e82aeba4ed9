//! `expert_gate_<format>`: `y[r][i][n] = gate(Wgate[e][n] · x[r], Wup[e][n] · x[r])`, `e = ids[r][i]`: the first two products of
//! the experts that a row uses, and the activation between them.
//!
//! Products are multiplied by the scale of their expert and get its bias before the gate. An id beyond the experts is the last
//! one. A SIMD group computes two outputs.

use akunu_types::DType;
use akunu_types::params::ExpertParams;

use super::products::{Experts, constants, dot, gate};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::table::{Args, Family, KernelRow, Weight, buffers};
use crate::twin::Twin;

/// Outputs of a SIMD group.
const OUTPUTS: u32 = 2;

buffers! {
    pub struct Buffers, Slices(|args| experts = Experts::of(args), ExpertParams at 9) {
        x: read f32 = [experts.params.n_rows, experts.params.K],
        ids: read u32 = [experts.n_results()],
        gate: read Weight = experts.weight_bytes(&experts.first),
        up: read Weight = experts.weight_bytes(&experts.second),
        gate_bias: read f32 = experts.bias_len(),
        up_bias: read f32 = experts.bias_len(),
        gate_scale: read f32 = experts.scale_len(),
        up_scale: read f32 = experts.scale_len(),
        y: write f32 = [experts.n_results(), experts.params.N],
    }
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("expert_gate_", ""),
        dtype: Some(dtype),
        family: Family::Experts,
        source: "expert_gate",
        constants: constants(dtype),
        launch: |args, _| Experts::of(args).launch(OUTPUTS),
        work,
        twin,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..KernelRow::of::<Buffers<()>>()
    }
}

fn work(args: &Args, once: Work) -> Work {
    let experts = Experts::of(args);
    let p = &experts.params;
    let read = |weight| Traffic::read(experts.read_bytes(weight));
    once.with(Buffers::PLACES.gate, read(&experts.first))
        .with(Buffers::PLACES.up, read(&experts.second))
        .with_flops(multiply_adds(&[2, p.n_rows, p.n_used, p.N, p.K]))
}

fn twin(t: &mut Twin) {
    let experts = Experts::of(&t.args());
    let p = &experts.params;
    let b = Slices::of(t);
    let act = gate(p.activation);
    let results = b.y.chunks_exact_mut(p.N.max(1) as usize);
    for (result, y) in results.enumerate() {
        let x = &b.x[result / p.n_used as usize * p.K as usize..][..p.K as usize];
        let expert = experts.expert(b.ids, result);
        for (n, y) in y.iter_mut().enumerate() {
            let row = experts.row(expert, n);
            let gate = dot(&experts.first, b.gate, row, x);
            let up = dot(&experts.second, b.up, row, x);
            *y = act(
                experts.finished(gate, [expert, n], b.gate_bias, b.gate_scale),
                experts.finished(up, [expert, n], b.up_bias, b.up_scale),
            );
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::experts::products::cases::{self, Shape, bind, case_of, ids};

    /// The gate passes on the errors of two products as relative ones, and where it is clamped none: as those of products, 1e-10.
    const NMSE: f64 = 1e-10;

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        cases::all(dtype, case)
    }

    fn case(dtype: DType, at: usize, shape: Shape) -> Case {
        let (params, mut rng) = case_of(dtype, at, shape);
        let row = row(dtype);
        let case = Case::new(format!("{shape:?}"), &params, NMSE);
        let args = row.args(bytemuck::bytes_of(&params), &case.constants);
        let experts = Experts::of(&args);
        let bytes = Buffers::bytes(&args);
        // Where a gate is far below zero its error is a large share of nearly nothing.
        let x = rng.floats((params.n_rows * params.K) as usize, 0.05);
        let mut filled = case.clone().bind(&x).bind(&ids(&params, &mut rng));
        for weight in [experts.first, experts.second] {
            filled = filled.bind(&weight.random(&mut rng));
        }
        let biases = [bytes.gate_bias, bytes.up_bias];
        for bytes in biases.into_iter().chain([bytes.gate_scale, bytes.up_scale]) {
            filled = bind(filled, bytes, &mut rng);
        }
        filled.bind(&vec![f32::NAN; bytes.y / size_of::<f32>()])
    }
}
