//! `bias_add_f32`: `x[r][c] += bias[c]`, in place.

use akunu_types::SharedStruct;
use akunu_types::params::MatrixParams;

use super::launch_matrix;
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("bias_add_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "bias_add",
    bindings: &[
        read_write(0, "x", Element::F32),
        read(1, "bias", Element::F32),
    ],
    params_index: 2,
    params: MatrixParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: MatrixParams = args.params();
    launch_matrix(p.rows, p.cols)
}

fn required(args: &Args) -> Vec<usize> {
    let p: MatrixParams = args.params();
    vec![bytes::<f32>(&[p.rows, p.cols]), bytes::<f32>(&[p.cols])]
}

fn twin(t: &mut Twin) {
    let bias = t.read::<f32>(1);
    for row in t.write::<f32>(0).chunks_exact_mut(bias.len()) {
        for (x, bias) in row.iter_mut().zip(bias) {
            *x += bias;
        }
    }
}

fn cases() -> Vec<Case> {
    let shapes = [(1, 1), (3, 7), (2, 384), (5, 1030), (1, 1028)];
    shapes.into_iter().map(case).collect()
}

/// One addition each: exact.
fn case((rows, cols): (u32, u32)) -> Case {
    let mut rng = Rng::new(u64::from(cols));
    let params = MatrixParams {
        rows,
        cols,
        ..Default::default()
    };
    Case::new(format!("{rows} x {cols}"), &params, 0.0)
        .bind(&rng.floats((rows * cols) as usize, 1e3))
        .bind(&rng.floats(cols as usize, 1.0))
}
