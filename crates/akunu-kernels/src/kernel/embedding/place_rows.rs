//! `place_rows_f32`: `x[r] = features[r]`, or `x[r] += features[r]`, for rows r of an image.
//!
//! All other rows stay as they are, and their features are not read.

use akunu_types::params::{PlaceRowsParams, Row};

use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: PlaceRowsParams at 3) {
        x: change f32 = [p.n_rows, p.dim],
        features: read f32 = [p.n_rows, p.dim],
        rows: read Row = [p.n_rows],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("place_rows_f32", ""),
    family: Family::Embedding,
    source: "place_rows",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: PlaceRowsParams = args.params();
    let Launch { grid, threads, .. } = Launch::elementwise4(p.dim, chip);
    Launch::new([grid[0], p.n_rows, 1], threads)
}

fn twin(t: &mut Twin) {
    let p: PlaceRowsParams = t.params();
    let Slices { x, features, rows } = Slices::of(t);
    let dim = p.dim as usize;
    let placed = x.chunks_exact_mut(dim).zip(features.chunks_exact(dim));
    for ((x, features), _) in placed.zip(rows).filter(|(_, row)| row.is_of_image()) {
        for (x, feature) in x.iter_mut().zip(features) {
            *x = match p.add {
                0 => *feature,
                _ => *x + feature,
            };
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        // [dim, add], and which rows are of an image
        let cases: [([u32; 2], &[bool]); 5] = [
            ([1, 0], &[true]),
            ([384, 0], &[false, true, true, false, true]),
            ([384, 1], &[true, false, true]),
            ([1030, 1], &[true, true]),
            ([6, 0], &[false, false, true]),
        ];
        cases
            .into_iter()
            .map(|(shape, rows)| case(shape, rows))
            .collect()
    }

    /// At most one addition each: exact. Features of other rows are not numbers, and the last row is idle.
    fn case([dim, add]: [u32; 2], of_image: &[bool]) -> Case {
        let mut rng = Rng::new(u64::from(dim));
        let mut rows: Vec<Row> = (0..)
            .zip(of_image)
            .map(|(at, &of_image)| match of_image {
                true => Row::at(0, at).of_image(),
                false => Row::at(0, at),
            })
            .collect();
        rows.push(Row {
            flags: Row::IMAGE,
            ..Row::at(1, 0)
        });
        let (n_rows, width) = (rows.len(), dim as usize);
        let x = rng.floats(n_rows * width, 1.0);
        let mut features = rng.floats(n_rows * width, 1.0);
        for (features, row) in features.chunks_exact_mut(width).zip(&rows) {
            if !row.is_of_image() {
                features.fill(f32::NAN);
            }
        }
        let params = PlaceRowsParams {
            n_rows: n_rows as u32,
            dim,
            add,
            ..Default::default()
        };
        let label = format!("{n_rows} rows x {dim}, add {add}");
        Case::new(label, &params, 0.0)
            .bind(&x)
            .bind(&features)
            .bind(&rows)
    }
}
