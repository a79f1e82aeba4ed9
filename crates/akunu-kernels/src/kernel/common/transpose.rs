//! `transpose_f32`: `y[c][r] = x[r][c]`.
//!
//! One threadgroup for a tile of 32 × 32.

use akunu_types::SharedStruct;
use akunu_types::params::MatrixParams;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::cost::once;
use crate::extent::bytes;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("transpose_f32", ""),
    dtype: None,
    family: Family::Common,
    source: "transpose",
    bindings: &[read(0, "x", Element::F32), write(1, "y", Element::F32)],
    params_index: 2,
    params: MatrixParams::LAYOUT,
    constants: &[],
    launch,
    required,
    work: once,
    twin,
    cases: |_| cases(),
};

/// Side of a tile.
const TILE: u32 = 32;
/// Rows of a tile that are in flight at once.
const TILE_ROWS: u32 = 8;

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let p: MatrixParams = args.params();
    let grid = [p.cols.div_ceil(TILE), p.rows.div_ceil(TILE), 1];
    Launch::new(grid, [TILE, TILE_ROWS, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: MatrixParams = args.params();
    vec![bytes::<f32>(&[p.rows, p.cols]); 2]
}

fn twin(t: &mut Twin) {
    let p: MatrixParams = t.params();
    let (rows, cols) = (p.rows as usize, p.cols as usize);
    let x = t.read::<f32>(0);
    for (at, y) in t.write::<f32>(1).iter_mut().enumerate() {
        *y = x[(at % rows) * cols + at / rows];
    }
}

/// Elements are only moved: exact.
fn cases() -> Vec<Case> {
    let shapes = [(1, 1), (32, 32), (31, 33), (80, 50), (3, 100)].into_iter();
    shapes
        .map(|(rows, cols)| {
            let params = MatrixParams {
                rows,
                cols,
                ..Default::default()
            };
            let n = (rows * cols) as usize;
            Case::new(format!("{rows} x {cols}"), &params, 0.0)
                .bind(&Rng::new(u64::from(cols)).floats(n, 1.0))
                .bind(&vec![f32::NAN; n])
        })
        .collect()
}
