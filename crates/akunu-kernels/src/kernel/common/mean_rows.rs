//! `mean_rows_f32`: `to[i]` is the mean of the rows of one text, the one that row `outputs[i]` is of.
//!
//! A row says which number of its text it is (`position`) and how many there are (`length`).

use akunu_types::params::{GatherRowsParams, Row};

use super::launch_matrix;
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: GatherRowsParams at 3) {
        from: read f32 = [p.row_capacity, p.dim],
        outputs: read u32 = [p.n_rows],
        to: write f32 = [p.n_rows, p.dim],
        rows: read Row = [p.row_capacity],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("mean_rows_f32", ""),
    family: Family::Common,
    source: "mean_rows",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: GatherRowsParams = args.params();
    launch_matrix(p.n_rows, p.dim, chip)
}

fn twin(t: &mut Twin) {
    let p: GatherRowsParams = t.params();
    let Slices {
        from,
        outputs,
        to,
        rows,
    } = Slices::of(t);
    let dim = p.dim as usize;
    for (to, &output) in to.chunks_exact_mut(dim).zip(outputs) {
        let row = rows[output as usize];
        let text = &from[(output - row.position) as usize * dim..][..row.length as usize * dim];
        for (i, to) in to.iter_mut().enumerate() {
            let sum: f32 = text[i..].iter().step_by(dim).sum();
            *to = sum / row.length as f32;
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        vec![
            case(1, &[1], &[0]),
            case(7, &[2, 3], &[4, 0]),
            case(384, &[5, 1, 9], &[0, 5, 14]),
            case(1030, &[3], &[1]),
        ]
    }

    /// Texts of some lengths, and one row of each that is wanted. Sums in the same order, and one division: f32 exactly,
    /// but for executors that divide by multiplying.
    fn case(dim: u32, lengths: &[u32], outputs: &[u32]) -> Case {
        let row_capacity = lengths.iter().sum();
        let params = GatherRowsParams {
            n_rows: outputs.len() as u32,
            dim,
            row_capacity,
            ..Default::default()
        };
        let texts = lengths.iter().zip(0..);
        let rows: Vec<Row> = texts
            .flat_map(|(&length, text)| (0..length).map(move |at| Row::of_text(text, at, length)))
            .collect();
        let label = format!("texts of {lengths:?} rows x {dim}");
        Case::new(label, &params, 1e-13)
            .bind(&Rng::new(u64::from(dim)).floats((row_capacity * dim) as usize, 1.0))
            .bind(outputs)
            .bind(&vec![f32::NAN; outputs.len() * dim as usize])
            .bind(&rows)
    }
}
