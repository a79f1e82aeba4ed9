//! One row of a matrix of panels, as the file had it: for embeddings, whose weights are also those of the last
//! product. So the mapped file is not read again after its weights were laid out.

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

/// Row n of cell c: `scale * number + min`.
fn row_cell(quant: Quant, panel: &[u8], (c, n): (usize, usize), out: &mut [f32]) {
    let (cell, scales) = panel[quant.cell_at(c)..].split_at(quant.cell_bytes());
    let halves = affine(quant, scales, &panel[quant.super_at(c)..], n);
    for (column, out) in out.iter_mut().enumerate() {
        let number = quant.number(stored(quant.bits, cell, column, n));
        let [scale, min] = halves[column / (CELL / 2)];
        *out = scale * number as f32 + min;
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

/// The scale and the minimum of row n in both halves of a cell, from the scales of the cell and of its super-block.
fn affine(quant: Quant, scales: &[u8], supers: &[u8], n: usize) -> [[f32; 2]; 2] {
    let f16_of = |bytes: &[u8], array: usize| {
        let at = 2 * (array * ROWS + n);
        u16::from_le_bytes([bytes[at], bytes[at + 1]])
    };
    let two_of = |bytes: &[u8], n_arrays: usize| match n_arrays {
        0 => [0, 0],
        1 => [f16_of(bytes, 0), 0],
        _ => [f16_of(bytes, 0), f16_of(bytes, 1)],
    };
    let of_cell = match quant.scales {
        Scales::Plain | Scales::WithMin => two_of(scales, quant.scale_bytes() / (2 * ROWS)),
        Scales::Power | Scales::Signed => [scales[n].into(), 0],
        Scales::Grouped | Scales::Halves | Scales::HalvesWithMin => {
            [u16::from_le_bytes([scales[n], scales[ROWS + n]]), 0]
        }
    };
    let of_super = two_of(supers, quant.super_bytes() / (2 * ROWS));
    let halves = quant.scales.affine(of_cell, of_super);
    halves.map(|[scale, min]| [scale * quant.unit(), min])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Pages;
    use crate::panels::matrix::PackedShape;
    use crate::panels::pack::Source;
    use akunu_kernels::case::Rng;
    use akunu_kernels::weight;
    use akunu_program::Storage;
    use akunu_types::DType;
    use std::sync::Arc;

    /// A panel that lost or moved a number would give other rows than the file.
    #[test]
    fn rows_are_those_of_the_file_to_the_bit() {
        let (rows, cols) = (21, 512);
        for dtype in DType::all().filter(|dtype| Quant::of(*dtype).is_some()) {
            let matrix = weight::WeightLayout {
                storage: Storage::contiguous(dtype, [rows, cols], 64),
                ..weight::WeightLayout::contiguous(dtype, rows, cols)
            };
            let bytes = matrix.random(&mut Rng::new(3));
            let source = Source::of(matrix, &bytes).unwrap();
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
