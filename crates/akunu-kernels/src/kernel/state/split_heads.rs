//! `split_heads_f32`: heads that have a gate behind each: `first[r][h] = x[r][h][0]`, `second[r][h] = x[r][h][1]`.

use akunu_types::params::SplitHeadsParams;

use crate::chip::ChipConfig;
use crate::extent::count;
use crate::kernel::common::launch_matrix;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: SplitHeadsParams at 3) {
        x: read f32 = [p.n_rows, p.n_heads, 2, p.head_dim],
        first: write f32 = [p.n_rows, p.n_heads, p.head_dim],
        second: write f32 = [p.n_rows, p.n_heads, p.head_dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("split_heads_f32", ""),
    family: Family::State,
    source: "split_heads",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: SplitHeadsParams = args.params();
    launch_matrix(count(&[p.n_rows, p.n_heads]), p.head_dim, chip)
}

fn twin(t: &mut Twin) {
    let p: SplitHeadsParams = t.params();
    let Slices { x, first, second } = Slices::of(t);
    let dim = p.head_dim as usize;
    let halves = first
        .chunks_exact_mut(dim)
        .zip(second.chunks_exact_mut(dim));
    for (x, (first, second)) in x.chunks_exact(2 * dim).zip(halves) {
        first.copy_from_slice(&x[..dim]);
        second.copy_from_slice(&x[dim..]);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::extent::product;

    /// Numbers are moved, and nothing else: exact.
    pub fn all() -> Vec<Case> {
        [[1, 1, 1], [3, 5, 70], [2, 4, 256]].map(case).into()
    }

    fn case([n_rows, n_heads, head_dim]: [u32; 3]) -> Case {
        let params = SplitHeadsParams {
            n_rows,
            n_heads,
            head_dim,
            ..Default::default()
        };
        let n = product(&[n_rows, n_heads, head_dim]);
        Case::new(
            format!("{n_rows} rows, {n_heads} x {head_dim}"),
            &params,
            0.0,
        )
        .bind(&Rng::new(u64::from(head_dim)).floats(2 * n, 1.0))
        .bind(&vec![f32::NAN; n])
        .bind(&vec![f32::NAN; n])
    }
}
