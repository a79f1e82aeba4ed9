//! Learned positions of patches, which the host writes for each grid.
//!
//! ```text
//! position of a patch = sum over the table of   entry * share of its line * share of its column
//!
//! n patches and s entries on a side; patch i lies at c
//! from corner to corner   c = i * (s - 1) / (n - 1)          share of entry j = max(0, 1 - |j - c|)
//! by areas                c = (i + 1/2) * s / n - 1/2        share of entry j = max(0, 1 - |j - c| / w), w = max(1, s / n),
//!                                                            over the sum of all
//! ```

use std::path::Path;

use akunu_arch::Vision;
use akunu_arch::vision::Resize;
use akunu_gguf::WeightStore;

use super::patches::Grid;
use crate::error::EngineError;
use crate::weights::read_vector;

/// A square table of positions.
pub(super) struct Positions {
    /// (side * side, dim).
    table: Vec<f32>,
    side: usize,
    dim: usize,
    resize: Resize,
}

/// The entries of the table that a line or a column of patches takes.
struct Taps {
    first: usize,
    /// Of the entries from there on.
    shares: Vec<f32>,
}

impl Positions {
    /// The positions of a tower. [`Vision::check_weights`] has passed.
    pub fn read(
        store: &WeightStore,
        tower: &Vision,
        path: &Path,
    ) -> Result<Positions, EngineError> {
        let positions = &tower.positions;
        let name = &positions.weight.name;
        let Some(view) = store.tensor(name) else {
            unreachable!("{name} was checked with the others");
        };
        Ok(Positions {
            table: read_vector(&view, path)?,
            side: positions.side as usize,
            dim: tower.dim as usize,
            resize: positions.resize,
        })
    }

    /// The positions of a grid, (patches, dim), in the order of the rows.
    pub fn rows(&self, grid: Grid, merge: u32) -> Vec<f32> {
        let [lines, columns] = [grid.height, grid.width].map(|n| self.taps(n as usize));
        let mut rows = vec![0f32; grid.len() * self.dim];
        let patches = grid.patches(merge);
        for (row, (y, x)) in rows.chunks_exact_mut(self.dim).zip(patches) {
            self.write(row, &lines[y], &columns[x]);
        }
        rows
    }

    /// The entries of each of `n` lines.
    fn taps(&self, n: usize) -> Vec<Taps> {
        let side = self.side as f64;
        let taps = |at: usize| match self.resize {
            Resize::Corners => {
                let step = (side - 1.0) / n.saturating_sub(1).max(1) as f64;
                self.taps_at(at as f64 * step, 1.0)
            }
            Resize::Areas => {
                let step = side / n as f64;
                self.taps_at((at as f64 + 0.5) * step - 0.5, step.max(1.0))
            }
        };
        (0..n).map(taps).collect()
    }

    /// The entries less than `reach` from a place, by how near they are.
    fn taps_at(&self, place: f64, reach: f64) -> Taps {
        let first = (place - reach).floor().max(-1.0) as isize + 1;
        let last = (place + reach).ceil() as usize;
        let near = |entry: usize| (1.0 - (entry as f64 - place).abs() / reach).max(0.0);
        let first = first as usize;
        let shares: Vec<f64> = (first..last.min(self.side)).map(near).collect();
        let sum: f64 = shares.iter().sum();
        Taps {
            first,
            shares: shares
                .into_iter()
                .map(|share| (share / sum) as f32)
                .collect(),
        }
    }

    fn write(&self, row: &mut [f32], line: &Taps, column: &Taps) {
        for (y, down) in (line.first..).zip(&line.shares) {
            for (x, across) in (column.first..).zip(&column.shares) {
                let entry = &self.table[(y * self.side + x) * self.dim..][..self.dim];
                let share = down * across;
                row.iter_mut()
                    .zip(entry)
                    .for_each(|(sum, x)| *sum += share * x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that grow by 10 with each line and by 1 with each column: bilinear resizing finds exactly what lies between.
    #[test]
    fn tables_are_resized_from_corner_to_corner() {
        let side = 4;
        let table = (0..side * side).map(|at| (10 * (at / side) + at % side) as f32);
        let positions = Positions {
            table: table.collect(),
            side,
            dim: 1,
            resize: Resize::Corners,
        };
        let rows = |height, width, merge| positions.rows(Grid { height, width }, merge);
        assert_eq!(rows(4, 4, 1), positions.table);
        assert_eq!(rows(2, 7, 1)[..7], [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(rows(2, 2, 2), [0.0, 3.0, 30.0, 33.0]);
        // A square of 2 × 2 patches lies together.
        assert_eq!(rows(4, 4, 2)[..4], [0.0, 1.0, 10.0, 11.0]);
    }
}
