//! `bias_add_f32`: `x[r][c] += bias[c]`, in place.

use akunu_types::params::MatrixParams;

use super::launch_matrix;
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: MatrixParams at 2) {
        x: change f32 = [p.rows, p.cols],
        bias: read f32 = [p.cols],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("bias_add_f32", ""),
    family: Family::Common,
    source: "bias_add",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: MatrixParams = args.params();
    launch_matrix(p.rows, p.cols, chip)
}

fn twin(t: &mut Twin) {
    let Slices { x, bias } = Slices::of(t);
    for row in x.chunks_exact_mut(bias.len()) {
        for (x, bias) in row.iter_mut().zip(bias) {
            *x += bias;
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
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
}
