//! `gather_rows_f32`: `to[i] = from[outputs[i]]`, a row each: those whose results are wanted.

use akunu_types::SharedStruct;
use akunu_types::params::GatherRowsParams;

use super::launch_matrix;
use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("gather_rows_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "gather_rows",
    bindings: &[
        read(0, "from", Element::F32),
        read(1, "outputs", Element::U32),
        write(2, "to", Element::F32),
    ],
    params_index: 3,
    params: GatherRowsParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work,
    twin,
    cases: |_| cases(),
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: GatherRowsParams = args.params();
    launch_matrix(p.n_rows, p.dim)
}

fn required(args: &Args) -> Vec<usize> {
    let p: GatherRowsParams = args.params();
    vec![
        bytes::<f32>(&[p.row_capacity, p.dim]),
        bytes::<u32>(&[p.n_rows]),
        bytes::<f32>(&[p.n_rows, p.dim]),
    ]
}

/// Only the rows that are copied are read.
fn work(args: &Args, once: Work) -> Work {
    let p: GatherRowsParams = args.params();
    let read = bytes::<f32>(&[p.n_rows.min(p.row_capacity), p.dim]);
    once.with(0, Traffic::read(read))
}

fn twin(t: &mut Twin) {
    let p: GatherRowsParams = t.params();
    let (from, outputs) = (t.read::<f32>(0), t.read::<u32>(1));
    let dim = p.dim as usize;
    for (to, &row) in t.write::<f32>(2).chunks_exact_mut(dim).zip(outputs) {
        to.copy_from_slice(&from[row as usize * dim..][..dim]);
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(1, 1, &[0]),
        case(7, 4, &[3, 0, 3]),
        case(576, 3, &[2]),
        case(1030, 5, &[4, 1, 2, 3, 0]),
    ]
}

/// Elements are only moved: exact.
fn case(dim: u32, row_capacity: u32, outputs: &[u32]) -> Case {
    let params = GatherRowsParams {
        n_rows: outputs.len() as u32,
        dim,
        row_capacity,
        ..Default::default()
    };
    Case::new(
        format!("rows {outputs:?} of {row_capacity} x {dim}"),
        &params,
        0.0,
    )
    .bind(&Rng::new(u64::from(dim)).floats((row_capacity * dim) as usize, 1.0))
    .bind(outputs)
    .bind(&vec![f32::NAN; outputs.len() * dim as usize])
}
