//! Learned positions of patches, which the host writes for each grid.

use std::path::Path;

use akunu_arch::Vision;
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
        })
    }

    /// The positions of a grid, (patches, dim), in the order of the rows.
    pub fn rows(&self, grid: Grid, merge: u32) -> Vec<f32> {
        let row =
            |(y, x): (usize, usize)| &self.table[(y * self.side + x) * self.dim..][..self.dim];
        grid.patches(merge).flat_map(row).copied().collect()
    }
}
