//! `gather_rows_f32`: `to[i] = from[outputs[i]]`, a row each: those whose results are wanted.

use akunu_types::params::GatherRowsParams;

use super::launch_matrix;
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: GatherRowsParams at 3) {
        from: read f32 = [p.row_capacity, p.dim],
        outputs: read u32 = [p.n_rows],
        to: write f32 = [p.n_rows, p.dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("gather_rows_f32", ""),
    family: Family::Common,
    source: "gather_rows",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: GatherRowsParams = args.params();
    launch_matrix(p.n_rows, p.dim, chip)
}

/// Only the rows that are copied are read.
fn work(args: &Args, once: Work) -> Work {
    let p: GatherRowsParams = args.params();
    let read = bytes::<f32>(&[p.n_rows.min(p.row_capacity), p.dim]);
    once.with(Buffers::PLACES.from, Traffic::read(read))
}

fn twin(t: &mut Twin) {
    let p: GatherRowsParams = t.params();
    let Slices { from, outputs, to } = Slices::of(t);
    let dim = p.dim as usize;
    for (to, &row) in to.chunks_exact_mut(dim).zip(outputs) {
        to.copy_from_slice(&from[row as usize * dim..][..dim]);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
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
}
