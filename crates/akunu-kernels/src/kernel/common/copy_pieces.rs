//! `copy_pieces_f32`: pieces of each row of x become pieces of the same row of y.
//!
//! ```text
//! y[r * y_row + p * y_piece + i] = x[r * x_row + p * x_piece + i],   i < width
//! ```
//!
//! What lies between the pieces of y stays as it is.

use akunu_types::params::CopyPiecesParams;

use super::launch_matrix;
use crate::chip::ChipConfig;
use crate::extent::{count, strided};
use crate::table::{Args, Family, KernelRow, Launch, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: CopyPiecesParams at 2) {
        x: read f32 = reach([p.n_rows, p.x_row], [p.pieces, p.x_piece], p.width),
        y: change f32 = reach([p.n_rows, p.y_row], [p.pieces, p.y_piece], p.width),
    }
}

/// Elements from the first to the last of some rows, which have pieces of `width` elements.
fn reach([n_rows, row]: [u32; 2], [pieces, piece]: [u32; 2], width: u32) -> usize {
    let of_row = strided(pieces, piece, width);
    strided(n_rows, row, u32::try_from(of_row).unwrap_or(u32::MAX))
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("copy_pieces_f32", ""),
    family: Family::Common,
    source: "copy_pieces",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// Pieces of y that overlap are refused: two threads would write the same element.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: CopyPiecesParams = args.params();
    let is_apart = p.y_piece >= p.width || p.pieces == 1;
    let row_is_apart = strided(p.pieces, p.y_piece, p.width) <= p.y_row as usize || p.n_rows == 1;
    let pieces = match is_apart && row_is_apart {
        true => count(&[p.n_rows, p.pieces]),
        false => 0,
    };
    launch_matrix(pieces, p.width, chip)
}

fn twin(t: &mut Twin) {
    let p: CopyPiecesParams = t.params();
    let Slices { x, y } = Slices::of(t);
    let (width, pieces) = (p.width as usize, p.pieces as usize);
    for row in 0..p.n_rows as usize {
        for piece in 0..pieces {
            let from = row * p.x_row as usize + piece * p.x_piece as usize;
            let to = row * p.y_row as usize + piece * p.y_piece as usize;
            y[to..to + width].copy_from_slice(&x[from..from + width]);
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    /// Numbers are moved, and nothing else: exact. Pieces side by side, with gaps, and one that becomes several.
    pub fn all() -> Vec<Case> {
        vec![
            case([1, 1, 1], [1, 1], [1, 1]),
            case([5, 1, 256], [2048, 0], [256, 256]),
            case([3, 4, 70], [4 * 100, 100], [4 * 90 + 3, 90]),
            case([2, 16, 64], [576, 0], [16 * 192, 192]),
            case([3, 2, 1030], [2060, 1030], [2060, 1030]),
        ]
    }

    /// Rows, pieces and their width; the strides of x and of y.
    fn case(
        [n_rows, pieces, width]: [u32; 3],
        [x_row, x_piece]: [u32; 2],
        [y_row, y_piece]: [u32; 2],
    ) -> Case {
        let p = CopyPiecesParams {
            n_rows,
            pieces,
            width,
            x_row,
            x_piece,
            y_row,
            y_piece,
            ..Default::default()
        };
        let n = |row, piece| reach([p.n_rows, row], [p.pieces, piece], p.width);
        let mut rng = Rng::new(u64::from(p.width));
        Case::new(
            format!("{} rows, {} x {}", p.n_rows, p.pieces, p.width),
            &p,
            0.0,
        )
        .bind(&rng.floats(n(p.x_row, p.x_piece), 1.0))
        .bind(&rng.floats(n(p.y_row, p.y_piece), 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constants;

    /// Two threads would write the same element of y.
    #[test]
    fn pieces_that_overlap_get_an_empty_grid() {
        let good = CopyPiecesParams {
            n_rows: 2,
            pieces: 3,
            width: 8,
            x_row: 8,
            x_piece: 0,
            y_row: 24,
            y_piece: 8,
            ..Default::default()
        };
        let launches = |p: CopyPiecesParams| {
            let args = Args {
                dtype: None,
                params: bytemuck::bytes_of(&p),
                constants: &Constants::none(),
            };
            !launch(&args, &ChipConfig::m1()).grid.contains(&0)
        };
        assert!(launches(good));
        assert!(!launches(CopyPiecesParams { y_piece: 7, ..good }));
        assert!(!launches(CopyPiecesParams { y_row: 23, ..good }));
    }
}
