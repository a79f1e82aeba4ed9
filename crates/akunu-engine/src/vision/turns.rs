//! What the patches of a grid turn by: cosines and sines of their line and their column.
//!
//! ```text
//! f[d] = theta ^ (-4d / head_dim),   d < head_dim / 4
//! angles of a patch   line * f[0], line * f[1], …, column * f[0], column * f[1], …
//! ```

use akunu_arch::vision::PatchTurn;

use super::patches::Grid;

/// The turns of a grid, (patches, 2, head_dim / 2), in the order of the rows.
pub(super) fn turns(turn: PatchTurn, grid: Grid, merge: u32) -> Vec<f32> {
    let quarter = turn.head_dim as usize / 4;
    let frequency = |d: usize| f64::from(turn.theta).powf(-(d as f64) / quarter as f64);
    let frequencies: Vec<f64> = (0..quarter).map(frequency).collect();
    let mut rows = Vec::with_capacity(grid.len() * turn.head_dim as usize);
    for (y, x) in grid.patches(merge) {
        let places = [y as f64, x as f64];
        let angles = places
            .iter()
            .flat_map(|place| frequencies.iter().map(move |f| place * f));
        rows.extend(angles.clone().map(|angle| angle.cos() as f32));
        rows.extend(angles.map(|angle| angle.sin() as f32));
    }
    rows
}
