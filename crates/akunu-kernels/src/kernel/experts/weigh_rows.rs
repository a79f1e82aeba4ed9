//! `weigh_rows_f32`: `y[r] = Σ_j w[r][j] * x[r][j]`, or `y[r] += …`: the results of a row's experts, weighed and added up.
//!
//! w may be the sigmoid of what is bound, the gate of a shared expert, or one number for all.

use akunu_types::params::WeighParams;

use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, product};
use crate::kernel::common::launch_matrix;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: WeighParams at 3) {
        x: read f32 = [p.n_rows, p.n_used, p.cols],
        weights: read f32 = weights(&p),
        y: change f32 = [p.n_rows, p.cols],
    }
}

/// [`WeighParams::weighed_by`]: the numbers that are bound.
pub const NUMBERS: u32 = 0;
/// [`WeighParams::weighed_by`]: the sigmoids of those.
pub const SIGMOIDS: u32 = 1;
/// [`WeighParams::weighed_by`]: the number of the params.
pub const ONE_NUMBER: u32 = 2;

/// The weights that are bound.
fn weights(p: &WeighParams) -> usize {
    match p.weighed_by {
        NUMBERS | SIGMOIDS => product(&[p.n_rows, p.n_used]),
        _ => 0,
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("weigh_rows_f32", ""),
    family: Family::Experts,
    source: "weigh_rows",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: WeighParams = args.params();
    launch_matrix(p.n_rows, p.cols, chip)
}

fn work(args: &Args, once: Work) -> Work {
    let p: WeighParams = args.params();
    let y = bytes::<f32>(&[p.n_rows, p.cols]);
    let y = if p.add == 0 {
        Traffic::written(y)
    } else {
        Traffic::both(y)
    };
    once.with(Buffers::PLACES.y, y)
        .with_flops(multiply_adds(&[p.n_rows, p.n_used, p.cols]))
}

/// The weight at a place of those that are bound.
pub fn weight(params: &WeighParams, bound: &[f32], at: usize) -> f32 {
    match params.weighed_by {
        NUMBERS => bound[at],
        SIGMOIDS => 1.0 / (1.0 + (-bound[at]).exp()),
        _ => params.weight,
    }
}

fn twin(t: &mut Twin) {
    let p: WeighParams = t.params();
    let Slices { x, weights, y } = Slices::of(t);
    let (cols, n_used) = (p.cols.max(1) as usize, p.n_used as usize);
    for (row, y) in y.chunks_exact_mut(cols).enumerate() {
        for (i, y) in y.iter_mut().enumerate() {
            let own = row * n_used..(row + 1) * n_used;
            let sum = own.fold(0.0, |sum, at| {
                sum + weight(&p, weights, at) * x[at * cols + i]
            });
            *y = if p.add == 0 { sum } else { *y + sum };
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        vec![
            case([1, 1, 3], false, SIGMOIDS),
            case([3, 16, 64], true, NUMBERS),
            case([2, 8, 1030], false, NUMBERS),
            case([5, 1, 512], true, SIGMOIDS),
            case([3, 1, 70], true, ONE_NUMBER),
        ]
    }

    /// A few products of each element, added in the same order.
    fn case([n_rows, n_used, cols]: [u32; 3], add: bool, weighed_by: u32) -> Case {
        let params = WeighParams {
            n_rows,
            cols,
            n_used,
            add: u32::from(add),
            weighed_by,
            weight: 0.5,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(n_rows * n_used + cols));
        let label = format!("{n_rows} rows, {n_used} × {cols}, add {add}, weighed by {weighed_by}");
        let y = match add {
            true => rng.floats((n_rows * cols) as usize, 1.0),
            false => vec![f32::NAN; (n_rows * cols) as usize],
        };
        Case::new(label, &params, 1e-12)
            .bind(&rng.floats((n_rows * n_used * cols) as usize, 1.0))
            .bind(&match weighed_by {
                ONE_NUMBER => vec![f32::NAN],
                _ => rng.floats((n_rows * n_used) as usize, 4.0),
            })
            .bind(&y)
    }
}
