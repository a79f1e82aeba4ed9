//! Products of a panel with a few vectors in plain Rust: for machines without kernels of their own. The
//! inner loops run over the sixteen rows of a panel, which a compiler turns into vectors.

use super::activation::{Activations, HALF};
use super::dots::{BATCH, Dots};
use super::format::{CELL, Quant, ROWS};
use super::row::RowScales;

/// Quantises a vector.
///
/// # Safety
/// None: it has the type of the functions that want certain processors.
pub unsafe fn quantise(into: &mut Activations, x: &[f32], quant: Quant) {
    into.quantise(x, quant.offset);
}

/// Products of quantised cells.
///
/// # Safety
/// `panel` points at a panel of `cells` cells; each of `x` has as many.
pub unsafe fn quant_dots(quant: Quant, panel: *const u8, cells: usize, x: &[Activations]) -> Dots {
    let bytes = quant.cell_at(cells.saturating_sub(1)) + quant.stride();
    // SAFETY: the last cell's scales end the panel, but for padding.
    let panel = unsafe { std::slice::from_raw_parts(panel, bytes) };
    let mut sums = [[0f32; ROWS]; BATCH];
    for c in 0..cells {
        let (cell, scales) = panel[quant.cell_at(c)..].split_at(quant.cell_bytes());
        let supers = &panel[quant.super_at(c)..];
        let numbers = widen(quant.bits, cell);
        let of_rows: [RowScales; ROWS] =
            std::array::from_fn(|n| RowScales::read(quant.scales, scales, supers, n));
        for (sums, x) in sums.iter_mut().zip(x) {
            let [q0, q1, r0, r1] = [0, 1, 2, 3].map(|at| quarter_dots(&numbers, x, (c, at)));
            let halves = [(q0, r0), (q1, r1)];
            for (half, (q, r)) in halves.into_iter().enumerate() {
                let weight_of_min = x.weights_of_half_mins[2 * c + half];
                for (n, row) in of_rows.iter().enumerate() {
                    let dot = x.scales[c] * (256 * q[n] + r[n]) as f32;
                    sums[n] += row.scales[half] * dot + row.mins[half] * weight_of_min;
                }
            }
        }
    }
    sums
}

/// `Σ (u - offset) q` of each row over a quarter of cell `c` of the activations: q of both halves, then r of both.
fn quarter_dots(
    numbers: &[[u8; 4 * ROWS]; 8],
    x: &Activations,
    (c, quarter): (usize, usize),
) -> [i32; ROWS] {
    let mut dots = [x.starts[4 * c + quarter]; ROWS];
    let values = &x.values[2 * CELL * c + HALF * quarter..][..HALF];
    let numbers = &numbers[4 * (quarter % 2)..];
    for (numbers, x) in numbers.iter().zip(values.chunks_exact(4)) {
        for (dot, row) in dots.iter_mut().zip(numbers.chunks_exact(4)) {
            let products = row
                .iter()
                .zip(x)
                .map(|(&u, &q)| i32::from(u) * i32::from(q));
            *dot += products.sum::<i32>();
        }
    }
    dots
}

/// A cell's numbers, four columns of each row at a time.
fn widen(bits: u32, cell: &[u8]) -> [[u8; 4 * ROWS]; 8] {
    let mut numbers = [[0; 4 * ROWS]; 8];
    for (j, numbers) in numbers.iter_mut().enumerate() {
        let (from, shift) = if bits == 8 {
            (j, 0)
        } else {
            (j % 4, j / 4 * 4)
        };
        let mask = if bits == 8 { 255 } else { 15 };
        for (i, (number, byte)) in numbers.iter_mut().zip(&cell[64 * from..][..64]).enumerate() {
            *number = byte >> shift & mask;
            if bits == 8 {
                continue;
            }
            for bit in 4..bits {
                let plane = &cell[64 * bit as usize + 8 * j..][..8];
                *number |= (plane[i / 8] >> (i % 8) & 1) << bit;
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::pack::{Source, pack};
    use akunu_kernels::case::Rng;
    use akunu_kernels::weight::Matrix;
    use akunu_types::DType;

    /// On machines with kernels of their own nothing else runs this code.
    #[test]
    fn a_panel_gives_the_products_of_its_rows() {
        let (rows, cols) = (ROWS, 512);
        for dtype in DType::all() {
            let Some(quant) = Quant::of(dtype) else {
                continue;
            };
            let mut rng = Rng::new(5);
            let weight = Matrix {
                group_size: 64,
                scales_at: dtype.bytes_of(rows * cols).unwrap(),
                ..Matrix::contiguous(dtype, rows, cols)
            };
            let bytes = weight.random(&mut rng);
            let x = rng.floats(cols, 1.0);
            let source = Source::new(weight, &bytes);
            let cells = cols / CELL;
            let mut panel = vec![0; quant.panel_bytes(cells)];
            pack(&source, 0, &mut panel);
            let mut quantised = Activations::default();
            // SAFETY: the panel and the vector have as many cells.
            let dots = unsafe {
                quantise(&mut quantised, &x, quant);
                quant_dots(quant, panel.as_ptr(), cells, &[quantised])
            };
            let exact = |n| {
                weight
                    .row(&bytes, n)
                    .iter()
                    .zip(&x)
                    .map(|(w, x)| w * x)
                    .sum()
            };
            let exact: Vec<f32> = (0..rows).map(exact).collect();
            let error: f32 = exact
                .iter()
                .zip(dots[0])
                .map(|(a, b)| (a - b).powi(2))
                .sum();
            let power: f32 = exact.iter().map(|a| a * a).sum();
            // 16-bit activations: 1e-9 of the power.
            assert!(error / power < 1e-8, "{dtype}: {}", error / power);
        }
    }
}
