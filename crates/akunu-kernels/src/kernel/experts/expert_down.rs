//! `expert_down_<format>`: `y[r][i][n] = W[e][n] · x[r][i]`, `e = ids[r][i]`: the last product of the experts that a row uses.
//!
//! A product is multiplied by the scale of its expert and gets its bias. An id beyond the experts is the last one. A SIMD group
//! computes four outputs.

use akunu_types::DType;
use akunu_types::params::ExpertParams;

use super::products::{Experts, constants, dot};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::table::{Args, Family, KernelRow, Weight, buffers};
use crate::twin::Twin;

/// Outputs of a SIMD group.
const OUTPUTS: u32 = 4;

buffers! {
    pub struct Buffers, Slices(|args| experts = Experts::of(args), ExpertParams at 6) {
        x: read f32 = [experts.n_results(), experts.params.K],
        ids: read u32 = [experts.n_results()],
        weight: read Weight = experts.weight_bytes(&experts.first),
        bias: read f32 = experts.bias_len(),
        scale: read f32 = experts.scale_len(),
        y: write f32 = [experts.n_results(), experts.params.N],
    }
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("expert_down_", ""),
        dtype: Some(dtype),
        family: Family::Experts,
        source: "expert_down",
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
    let weight = Traffic::read(experts.read_bytes(&experts.first));
    once.with(Buffers::PLACES.weight, weight)
        .with_flops(multiply_adds(&[p.n_rows, p.n_used, p.N, p.K]))
}

fn twin(t: &mut Twin) {
    let experts = Experts::of(&t.args());
    let p = &experts.params;
    let b = Slices::of(t);
    let results = b.y.chunks_exact_mut(p.N.max(1) as usize);
    for (result, y) in results.enumerate() {
        let x = &b.x[result * p.K as usize..][..p.K as usize];
        let expert = experts.expert(b.ids, result);
        for (n, y) in y.iter_mut().enumerate() {
            let product = dot(&experts.first, b.weight, experts.row(expert, n), x);
            *y = experts.finished(product, [expert, n], b.bias, b.scale);
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::experts::products::cases::{self, Shape, bind, case_of, ids};

    /// The sums of products in another order.
    const NMSE: f64 = 1e-10;

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        cases::all(dtype, case)
    }

    fn case(dtype: DType, at: usize, shape: Shape) -> Case {
        let (params, mut rng) = case_of(dtype, at, shape);
        let row = row(dtype);
        let case = Case::new(format!("{shape:?}"), &params, NMSE);
        let args = row.args(bytemuck::bytes_of(&params), &case.constants);
        let (experts, bytes) = (Experts::of(&args), Buffers::bytes(&args));
        let x = rng.floats(bytes.x / size_of::<f32>(), 1.0);
        let mut filled = case.clone().bind(&x).bind(&ids(&params, &mut rng));
        filled = filled.bind(&experts.first.random(&mut rng));
        for bytes in [bytes.bias, bytes.scale] {
            filled = bind(filled, bytes, &mut rng);
        }
        filled.bind(&vec![f32::NAN; bytes.y / size_of::<f32>()])
    }
}
