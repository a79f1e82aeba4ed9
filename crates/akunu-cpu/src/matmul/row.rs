//! One row of a matrix of panels, as the file had it: for embeddings, whose weights are also those of the last
//! product. So the mapped file is not read again after its weights were laid out.

use half::{bf16, f16};

use super::format::{CELL, Float, Format, Quant, ROWS, Scales};
use super::matrix::Matrix;

impl Matrix {
    /// Writes row `n` to `out`, which has as many numbers as the matrix has columns.
    pub fn row(&self, n: usize, out: &mut [f32]) {
        let (panel, n) = (self.panel(n / ROWS), n % ROWS);
        match self.plan.format {
            Format::Quant(quant) => {
                for (c, out) in out.chunks_mut(CELL).enumerate() {
                    quant_cell(quant, panel, (c, n), out);
                }
            }
            Format::Float(float) => {
                for (column, out) in out.iter_mut().enumerate() {
                    let at = 2 * ROWS * (column / 2) + 2 * n + column % 2;
                    *out = number(float, &panel[at * float.bytes()..]);
                }
            }
        }
    }
}

/// Row n of cell c: `scale * (q - offset) + min`.
fn quant_cell(quant: Quant, panel: &[u8], (c, n): (usize, usize), out: &mut [f32]) {
    let (cell, scales) = panel[quant.cell_at(c)..].split_at(quant.cell_bytes());
    let [scale, second] = row_scales(quant.scales, scales, &panel[quant.super_at(c)..], n);
    for (column, out) in out.iter_mut().enumerate() {
        let q = stored(quant.bits, cell, column, n) as i32 - quant.offset;
        *out = match quant.scales {
            Scales::Halves if column >= CELL / 2 => second * q as f32,
            Scales::Plain | Scales::Halves => scale * q as f32,
            Scales::WithMin | Scales::Grouped => scale * q as f32 + second,
        };
    }
}

/// The number that is stored for a column of row n.
fn stored(bits: u32, cell: &[u8], column: usize, n: usize) -> u8 {
    let (j, i) = (column / 4, column % 4);
    if bits == 8 {
        return cell[64 * j + 4 * n + i];
    }
    let mut q = cell[64 * (j % 4) + 4 * n + i] >> (j / 4 * 4) & 15;
    for bit in 4..bits {
        let word = &cell[64 * bit as usize + 8 * j..][..8];
        let at = 4 * n + i;
        q |= (word[at / 8] >> (at % 8) & 1) << bit;
    }
    q
}

/// Row n's scale, and its minimum or second scale.
pub fn row_scales(kind: Scales, scales: &[u8], supers: &[u8], n: usize) -> [f32; 2] {
    let half = |bytes: &[u8], array: usize| number(Float::F16, &bytes[2 * (array * ROWS + n)..]);
    match kind {
        Scales::Plain => [half(scales, 0), 0.0],
        Scales::WithMin => [half(scales, 0), half(scales, 1)],
        Scales::Grouped => [
            half(supers, 0) * f32::from(scales[n]),
            -(half(supers, 1) * f32::from(scales[ROWS + n])),
        ],
        Scales::Halves => {
            [n, ROWS + n].map(|at| half(supers, 0) * f32::from(scales[at].cast_signed()))
        }
    }
}

/// The number that `bytes` begin with.
pub fn number(float: Float, bytes: &[u8]) -> f32 {
    match float {
        Float::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
        Float::BF16 => bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
        Float::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::matrix::Plan;
    use crate::matmul::pack::Source;
    use crate::memory::Pages;
    use akunu_kernels::case::Rng;
    use akunu_kernels::weight;
    use akunu_types::DType;
    use std::sync::Arc;

    /// A panel that lost or moved a number would give other rows than the file.
    #[test]
    fn rows_are_those_of_the_file_to_the_bit() {
        let (rows, cols) = (21, 512);
        for dtype in DType::all().filter(|dtype| Format::of(*dtype).is_some()) {
            let matrix = weight::Matrix {
                group_size: 64,
                scales_at: dtype.bytes_of(rows * cols).unwrap(),
                ..weight::Matrix::contiguous(dtype, rows, cols)
            };
            let bytes = matrix.random(&mut Rng::new(3));
            let source = Source {
                weight: matrix,
                bytes: &bytes,
            };
            let plan = Plan::of(&source).unwrap();
            let pages = Arc::new(Pages::zeroed(plan.bytes()).unwrap());
            let panels = Matrix::new(plan, pages, 0);
            // SAFETY: nobody else has them.
            unsafe { panels.fill(&source, 0..plan.count()) };
            for n in 0..rows {
                let mut row = vec![0.0; cols];
                panels.row(n, &mut row);
                let mut exact = matrix.row(&bytes, n);
                if matches!(dtype, DType::Q2_K | DType::MLX_Q8) {
                    // Widened to f16.
                    exact
                        .iter_mut()
                        .for_each(|x| *x = f16::from_f32(*x).to_f32());
                }
                assert_eq!(row, exact, "{dtype}, row {n}");
            }
        }
    }
}
