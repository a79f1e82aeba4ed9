//! One row of a matrix of panels, as the file had it: for embeddings, whose weights are also those of the last
//! product. So the mapped file is not read again after its weights were laid out.

use half::f16;

use super::format::{CELL, Quant, ROWS, Scales};
use super::matrix::PackedMatrix;

impl PackedMatrix {
    /// Writes row `n` to `out`, which has as many numbers as the matrix has columns.
    pub fn row(&self, n: usize, out: &mut [f32]) {
        let (panel, n) = (self.panel(n / ROWS), n % ROWS);
        for (c, out) in out.chunks_mut(CELL).enumerate() {
            row_cell(self.shape.quant, panel, (c, n), out);
        }
    }
}

/// Row n of cell c: `scale * (q - offset) + min`.
fn row_cell(quant: Quant, panel: &[u8], (c, n): (usize, usize), out: &mut [f32]) {
    let (cell, scales) = panel[quant.cell_at(c)..].split_at(quant.cell_bytes());
    let RowScales { scales, mins } =
        RowScales::read(quant.scales, scales, &panel[quant.super_at(c)..], n);
    for (column, out) in out.iter_mut().enumerate() {
        let q = stored(quant.bits, cell, column, n) as i32 - quant.offset;
        let half = column / (CELL / 2);
        *out = scales[half] * q as f32 + mins[half];
    }
}

/// The number that is stored for a column of row n.
fn stored(bits: u32, cell: &[u8], column: usize, n: usize) -> u8 {
    let (j, i) = (column / 4, column % 4);
    if bits == 8 {
        return cell[64 * j + 4 * n + i];
    }
    let four = cell[64 * (j % 4) + 4 * n + i] >> (j / 4 * 4) & 15;
    let high = match bits {
        5 => cell[256 + 4 * n + i] >> j & 1,
        6 => cell[256 + 64 * (j / 4) + 4 * n + i] >> (2 * (j % 4)) & 3,
        _ => 0,
    };
    four | high << 4
}

/// The scale and the minimum of a row in both halves of a cell.
#[derive(Clone, Copy)]
pub struct RowScales {
    /// The scales.
    pub scales: [f32; 2],
    /// The minima; zeros where the format has none.
    pub mins: [f32; 2],
}

impl RowScales {
    /// Those of row n, from the scales of a cell and of its super-block.
    pub fn read(kind: Scales, scales: &[u8], supers: &[u8], n: usize) -> RowScales {
        let half = |bytes: &[u8], array: usize| {
            let at = 2 * (array * ROWS + n);
            f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
        };
        let bytes = [scales[n], scales[ROWS + n]];
        let (scales, mins) = match kind {
            Scales::Plain => ([half(scales, 0); 2], [0.0; 2]),
            Scales::WithMin => ([half(scales, 0); 2], [half(scales, 1); 2]),
            Scales::Grouped => (
                [half(supers, 0) * f32::from(bytes[0]); 2],
                [-(half(supers, 1) * f32::from(bytes[1])); 2],
            ),
            Scales::Halves => {
                let of = |byte: u8| half(supers, 0) * f32::from(byte.cast_signed());
                (bytes.map(of), [0.0; 2])
            }
            Scales::HalvesWithMin => (
                bytes.map(|byte| half(supers, 0) * f32::from(byte & 15)),
                bytes.map(|byte| -(half(supers, 1) * f32::from(byte >> 4))),
            ),
        };
        RowScales { scales, mins }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Pages;
    use crate::panels::matrix::PackedShape;
    use crate::panels::pack::Source;
    use akunu_kernels::case::Rng;
    use akunu_kernels::weight::{self};
    use akunu_program::{MlxLayout, ScaleType};
    use akunu_types::DType;
    use std::sync::Arc;

    /// A panel that lost or moved a number would give other rows than the file.
    #[test]
    fn rows_are_those_of_the_file_to_the_bit() {
        let (rows, cols) = (21, 512);
        for dtype in DType::all().filter(|dtype| Quant::of(*dtype).is_some()) {
            let matrix = weight::WeightLayout {
                mlx: MlxLayout::contiguous(
                    dtype,
                    [rows, cols].map(|n| n as u32),
                    64,
                    ScaleType::F16,
                ),
                ..weight::WeightLayout::contiguous(dtype, rows, cols)
            };
            let bytes = matrix.random(&mut Rng::new(3));
            let source = Source::new(matrix, &bytes);
            let shape = PackedShape::of(&source).unwrap();
            let pages = Arc::new(Pages::zeroed(shape.bytes()).unwrap());
            let panels = PackedMatrix::new(shape, pages, 0);
            // SAFETY: nobody else has them.
            unsafe { panels.fill(&source, 0..shape.count()) };
            for n in 0..rows {
                let mut row = vec![0.0; cols];
                panels.row(n, &mut row);
                let exact = matrix.row(&bytes, n);
                assert_eq!(row, exact, "{dtype}, row {n}");
            }
        }
    }
}
