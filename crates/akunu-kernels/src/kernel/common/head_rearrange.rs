//! `head_rearrange_f32`: `y[i][o] = x[o][i]`, from (n_outer, n_inner, dim) to (n_inner, n_outer, dim).
//!
//! Tokens × heads to heads × tokens, or back.

use akunu_types::SharedStruct;
use akunu_types::params::HeadRearrangeParams;

use super::launch_matrix;
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::{bytes, count};
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("head_rearrange_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "head_rearrange",
    bindings: &[read(0, "x", Element::F32), write(1, "y", Element::F32)],
    params_index: 2,
    params: HeadRearrangeParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: HeadRearrangeParams = args.params();
    launch_matrix(p.n_outer, count(&[p.n_inner, p.dim]))
}

fn required(args: &Args) -> Vec<usize> {
    let p: HeadRearrangeParams = args.params();
    vec![bytes::<f32>(&[p.n_outer, p.n_inner, p.dim]); 2]
}

fn twin(t: &mut Twin) {
    let p: HeadRearrangeParams = t.params();
    let (n_outer, n_inner) = (p.n_outer as usize, p.n_inner as usize);
    let dim = p.dim as usize;
    let x = t.read::<f32>(0);
    for (at, head) in t.write::<f32>(1).chunks_exact_mut(dim).enumerate() {
        let (inner, outer) = (at / n_outer, at % n_outer);
        head.copy_from_slice(&x[(outer * n_inner + inner) * dim..][..dim]);
    }
}

/// Elements are only moved: exact.
fn cases() -> Vec<Case> {
    let shapes = [(1, 1, 1), (5, 9, 64), (9, 5, 80), (7, 3, 6), (2, 20, 64)].into_iter();
    shapes
        .map(|(n_outer, n_inner, dim)| {
            let params = HeadRearrangeParams {
                n_outer,
                n_inner,
                dim,
                ..Default::default()
            };
            let n = (n_outer * n_inner * dim) as usize;
            Case::new(format!("{n_outer} x {n_inner} x {dim}"), &params, 0.0)
                .bind(&Rng::new(u64::from(n_inner)).floats(n, 1.0))
                .bind(&vec![f32::NAN; n])
        })
        .collect()
}
