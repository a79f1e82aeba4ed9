//! `weigh_rows_f32`: `y[r] = Σ_j w[r][j] * x[r][j]`, or `y[r] += …`: the results of a row's experts, weighed and added up.
//!
//! With `sigmoid`, w is the sigmoid of what is bound: the gate of a shared expert.

use akunu_types::params::WeighParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::bytes;
use crate::kernel::common::launch_matrix;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: WeighParams at 3) {
        x: read f32 = [p.n_rows, p.n_used, p.cols],
        weights: read f32 = [p.n_rows, p.n_used],
        y: change f32 = [p.n_rows, p.cols],
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
    cases: |_| cases(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: WeighParams = args.params();
    launch_matrix(p.n_rows, p.cols)
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

/// The weight of a number that is bound.
pub fn weight(params: &WeighParams, found: f32) -> f32 {
    match params.sigmoid {
        0 => found,
        _ => 1.0 / (1.0 + (-found).exp()),
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
                sum + weight(&p, weights[at]) * x[at * cols + i]
            });
            *y = if p.add == 0 { sum } else { *y + sum };
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case([1, 1, 3], false, true),
        case([3, 16, 64], true, false),
        case([2, 8, 1030], false, false),
        case([5, 1, 512], true, true),
    ]
}

/// A few products of each element, added in the same order.
fn case([n_rows, n_used, cols]: [u32; 3], add: bool, sigmoid: bool) -> Case {
    let params = WeighParams {
        n_rows,
        cols,
        n_used,
        add: u32::from(add),
        sigmoid: u32::from(sigmoid),
        ..Default::default()
    };
    let mut rng = Rng::new(u64::from(n_rows * n_used + cols));
    let label = format!("{n_rows} rows, {n_used} × {cols}, add {add}, sigmoid {sigmoid}");
    let y = match add {
        true => rng.floats((n_rows * cols) as usize, 1.0),
        false => vec![f32::NAN; (n_rows * cols) as usize],
    };
    Case::new(label, &params, 1e-12)
        .bind(&rng.floats((n_rows * n_used * cols) as usize, 1.0))
        .bind(&rng.floats((n_rows * n_used) as usize, 4.0))
        .bind(&y)
}
