//! `pos_embed_add_f32`: `x[r][i] += table[p][i]`, in place.
//!
//! Learned positions (Whisper, BERT): p is the row's position; one beyond the table takes its last row. Or, by kind, p is
//! 1 for rows of the second text of a pair and 0 for all others: BERT's token types.

use akunu_types::params::{PosEmbedParams, Row};

use crate::chip::ChipConfig;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: PosEmbedParams at 2) {
        x: change f32 = [p.n_rows, p.dim],
        table: read f32 = [p.n_positions, p.dim],
        rows: read Row = [p.n_rows],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("pos_embed_add_f32", ""),
    family: Family::Embedding,
    source: "pos_embed_add",
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// One thread for four elements of each row; an empty table gives an empty grid, which the plan
/// check refuses.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: PosEmbedParams = args.params();
    let Launch { grid, threads, .. } = Launch::elementwise4(p.dim, chip);
    let n_rows = if p.n_positions == 0 { 0 } else { p.n_rows };
    Launch::new([grid[0], n_rows, 1], threads)
}

/// Of the table at most one row for each row is read.
fn work(args: &Args, once: Work) -> Work {
    let p: PosEmbedParams = args.params();
    let rows = p.n_rows.min(p.n_positions);
    once.with(
        Buffers::PLACES.table,
        Traffic::read(bytes::<f32>(&[rows, p.dim])),
    )
}

/// The row of the table that a row takes.
pub fn place(p: &PosEmbedParams, row: &Row) -> usize {
    let wanted = match p.by_kind {
        0 => row.position,
        _ => u32::from(row.is_second()),
    };
    wanted.min(p.n_positions - 1) as usize
}

fn twin(t: &mut Twin) {
    let p: PosEmbedParams = t.params();
    let Slices { x, table, rows } = Slices::of(t);
    let dim = p.dim as usize;
    for (x, row) in x.chunks_exact_mut(dim).zip(rows) {
        for (x, e) in x.iter_mut().zip(&table[place(&p, row) * dim..]) {
            *x += e;
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        // [dim, positions, by kind], and the rows' positions: an odd one is of a second text
        let cases: [([u32; 3], &[u32]); 6] = [
            ([1, 1, 0], &[0]),
            ([384, 8, 0], &[0, 1, 2, 0, 1]),
            ([384, 8, 0], &[7]),
            ([1030, 4, 0], &[2, 3, 4, 5]),
            ([6, 2, 0], &[u32::MAX, 0, u32::MAX]),
            ([68, 2, 1], &[0, 1, 2, 3, 4]),
        ];
        cases
            .into_iter()
            .map(|(shape, rows)| case(shape, rows))
            .collect()
    }

    /// One addition each: exact.
    fn case([dim, n_positions, by_kind]: [u32; 3], positions: &[u32]) -> Case {
        let mut rng = Rng::new(u64::from(dim));
        let n_rows = positions.len() as u32;
        let params = PosEmbedParams {
            n_rows,
            dim,
            n_positions,
            by_kind,
        };
        let rows: Vec<Row> = positions
            .iter()
            .map(|&position| {
                let row = Row {
                    position,
                    ..Row::at(0, 0)
                };
                if position % 2 == 1 { row.second() } else { row }
            })
            .collect();
        let label =
            format!("positions {positions:?} of {n_positions}, dim {dim}, by kind {by_kind}");
        Case::new(label, &params, 0.0)
            .bind(&rng.floats((n_rows * dim) as usize, 1.0))
            .bind(&rng.floats((n_positions * dim) as usize, 1.0))
            .bind(&rows)
    }
}
