//! `scale_queries_f32`: queries times factors of their positions and of the elements that turn, in place.
//!
//! ```text
//! t = 1 + temperature * ln(1 + position / period)      with a division of whole numbers
//! q[i] *= t * turned_factor   where element i of its head turns,   q[i] *= t   elsewhere
//! ```
//!
//! Rows that are idle stay as they are.

use akunu_types::params::{Row, ScaleQueriesParams};

use crate::chip::ChipConfig;
use crate::kernel::common::launch_matrix;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ScaleQueriesParams at 2) {
        q: change f32 = [p.n_rows, p.n_heads, p.head_dim],
        rows: read Row = [p.n_rows],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("scale_queries_f32", ""),
    family: Family::Rope,
    source: "scale_queries",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: ScaleQueriesParams = args.params();
    launch_matrix(p.n_rows, p.n_heads.saturating_mul(p.head_dim), chip)
}

fn twin(t: &mut Twin) {
    let p: ScaleQueriesParams = t.params();
    let Slices { q, rows } = Slices::of(t);
    let head_dim = p.head_dim as usize;
    let of_rows = q.chunks_exact_mut(head_dim * p.n_heads as usize).zip(rows);
    for (q, row) in of_rows.filter(|(_, row)| row.is_active()) {
        let periods = row.position / p.period.max(1);
        let factor = 1.0 + p.temperature * (1.0 + periods as f32).ln();
        for head in q.chunks_exact_mut(head_dim) {
            let (turned, others) = head.split_at_mut(head_dim.min(p.turned_dim as usize));
            turned
                .iter_mut()
                .for_each(|x| *x *= factor * p.turned_factor);
            others.iter_mut().for_each(|x| *x *= factor);
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        vec![
            case((1, 64), 48, 0.0, &[Some(5)]),
            case(
                (3, 8),
                8,
                0.1,
                &[Some(0), Some(63), None, Some(64), Some(131_071)],
            ),
            case((2, 96), 0, 0.1, &[Some(700), Some(7)]),
            case((5, 10), 4, 0.5, &[Some(1000), None]),
        ]
    }

    /// A logarithm that is wrong by 4 units in the last place, and two roundings: 5e-7, squared.
    fn case(
        (n_heads, head_dim): (u32, u32),
        turned_dim: u32,
        temperature: f32,
        positions: &[Option<u32>],
    ) -> Case {
        let row = |position: &Option<u32>| match position {
            Some(position) => Row::at(0, *position),
            None => Row::default(),
        };
        let rows: Vec<Row> = positions.iter().map(row).collect();
        let params = ScaleQueriesParams {
            n_rows: rows.len() as u32,
            n_heads,
            head_dim,
            turned_dim,
            turned_factor: 1.4,
            temperature,
            period: 64,
            ..Default::default()
        };
        let n = rows.len() * (n_heads * head_dim) as usize;
        let q = Rng::new(u64::from(head_dim)).floats(n, 1.0);
        let name = format!("{} rows x {n_heads} heads of {head_dim}", rows.len());
        Case::new(name, &params, 2.5e-13).bind(&q).bind(&rows)
    }
}
