//! `turn_heads_f32`: turns every head of (n_rows, n_heads, head_dim) in place, by cosines and sines of its row.
//!
//! ```text
//! x[a], x[b] = x[a] cos[d] - x[b] sin[d], x[a] sin[d] + x[b] cos[d],   a = d, b = d + head_dim / 2
//! ```
//!
//! The host knows what a row turns by: a patch of an image by its line in some pairs, and by its column in the others.

use akunu_types::params::TurnHeadsParams;

use super::pair_launch;
use crate::table::{Family, KernelRow, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: TurnHeadsParams at 2) {
        x: change f32 = [p.n_rows, p.n_heads, p.head_dim],
        turns: read f32 = [p.n_rows, p.head_dim],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("turn_heads_f32", ""),
    family: Family::Rope,
    source: "turn_heads",
    launch: |args, chip| {
        let p: TurnHeadsParams = args.params();
        pair_launch(p.n_heads, p.head_dim, p.n_rows, chip)
    },
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn twin(t: &mut Twin) {
    let p: TurnHeadsParams = t.params();
    let Slices { x, turns } = Slices::of(t);
    let (n_heads, head_dim) = (p.n_heads as usize, p.head_dim as usize);
    let rows = x.chunks_exact_mut(n_heads * head_dim);
    for (row, turns) in rows.zip(turns.chunks_exact(head_dim)) {
        let (cosines, sines) = turns.split_at(head_dim / 2);
        for head in row.chunks_exact_mut(head_dim) {
            let (first, second) = head.split_at_mut(head_dim / 2);
            let angles = cosines.iter().zip(sines);
            for ((a, b), (cosine, sine)) in first.iter_mut().zip(second).zip(angles) {
                (*a, *b) = (*a * cosine - *b * sine, *a * sine + *b * cosine);
            }
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        vec![
            case(1, 1, 64),
            case(5, 3, 12),
            case(3, 16, 72),
            case(2, 7, 2),
        ]
    }

    /// Two products and a sum, which may be fused: 1e-7 of the larger product, squared.
    fn case(n_rows: u32, n_heads: u32, head_dim: u32) -> Case {
        let params = TurnHeadsParams {
            n_rows,
            n_heads,
            head_dim,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(n_rows + head_dim));
        let x = rng.floats((n_rows * n_heads * head_dim) as usize, 1.0);
        let turns = rng.floats((n_rows * head_dim) as usize, 1.0);
        let name = format!("{n_rows} rows x {n_heads} heads of {head_dim}");
        Case::new(name, &params, 1e-13).bind(&x).bind(&turns)
    }
}
