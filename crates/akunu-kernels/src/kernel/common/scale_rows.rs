//! `scale_rows_f32`: each row of a matrix times the factor of its sequence, in place.
//!
//! ```text
//! x[i] *= factors[rows[r].sequence],   r = i, or outputs[i] with by_output
//! ```
//!
//! A factor of 0 gives zeros, whatever was there, and so does a row that is idle.

use akunu_types::params::{Row, ScaleRowsParams};

use super::launch_matrix;
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ScaleRowsParams at 4) {
        x: change f32 = [p.n_rows, p.cols],
        rows: read Row = [p.row_capacity],
        outputs: read u32 = [p.n_rows],
        factors: read f32 = [p.n_sequences],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("scale_rows_f32", ""),
    family: Family::Common,
    source: "scale_rows",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: ScaleRowsParams = args.params();
    launch_matrix(p.n_rows, p.cols, chip)
}

fn twin(t: &mut Twin) {
    let p: ScaleRowsParams = t.params();
    let Slices {
        x,
        rows,
        outputs,
        factors,
    } = Slices::of(t);
    let matrix = x.chunks_exact_mut(p.cols as usize);
    for (at, x) in matrix.enumerate() {
        let entry = if p.by_output == 0 {
            at
        } else {
            outputs[at] as usize
        };
        let row = &rows[entry];
        let factor = factors.get(row.sequence as usize).copied();
        let factor = factor.filter(|_| row.is_active()).unwrap_or(0.0);
        for x in x {
            *x = if factor == 0.0 { 0.0 } else { *x * factor };
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        vec![
            case(1, &[0], None),
            case(8, &[2, 0, 1, 2], None),
            case(7, &[3, 1, 0], Some(&[2, 0])),
            case(1030, &[1, 0, 1, 3, 2], Some(&[4, 3, 1])),
        ]
    }

    /// Four sequences, one of them with the factor 0 and infinities in its rows; the last row is idle. One product each:
    /// exact.
    fn case(cols: u32, sequences: &[u32], outputs: Option<&[u32]>) -> Case {
        let mut rows: Vec<Row> = sequences.iter().map(|&s| Row::at(s, 5)).collect();
        if let Some(last) = rows.last_mut().filter(|_| sequences.len() > 1) {
            last.flags = 0;
        }
        let n_rows = outputs.map_or(sequences.len(), <[u32]>::len);
        let params = ScaleRowsParams {
            n_rows: n_rows as u32,
            cols,
            row_capacity: sequences.len() as u32,
            n_sequences: 4,
            by_output: u32::from(outputs.is_some()),
            ..Default::default()
        };
        let identity: Vec<u32> = (0..n_rows as u32).collect();
        let outputs = outputs.unwrap_or(&identity);
        let mut x = Rng::new(u64::from(cols)).floats(n_rows * cols as usize, 1.0);
        for (x, &output) in x.chunks_exact_mut(cols as usize).zip(outputs) {
            if sequences[output as usize] == 2 {
                x.fill(f32::INFINITY);
            }
        }
        Case::new(format!("{n_rows} rows x {cols}"), &params, 0.0)
            .bind(&x)
            .bind(&rows)
            .bind(outputs)
            .bind(&[1.0f32, -0.75, 0.0, 3.5])
    }
}
