//! Products of a panel with a few vectors in plain Rust: for machines without kernels of their own. The
//! inner loops run over the sixteen rows of a panel, which a compiler turns into vectors.

use super::activation::{Activations, HALF};
use super::dots::{BATCH, Dots};
use super::format::{CELL, Float, Quant, ROWS, Scales};
use super::row::{number, row_scales};

/// Quantises a vector.
///
/// # Safety
/// None: it has the type of the functions that want certain processors.
pub unsafe fn quantise(into: &mut Activations, x: &[f32], offset: i32) {
    into.quantise(x, offset);
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
        let of_rows: [[f32; 2]; ROWS] =
            std::array::from_fn(|n| row_scales(quant.scales, scales, supers, n));
        for (sums, x) in sums.iter_mut().zip(x) {
            let [q0, q1, r0, r1] = [0, 1, 2, 3].map(|at| quarter_dots(&numbers, x, (c, at)));
            let [low, high] = [(q0, r0), (q1, r1)]
                .map(|(q, r)| std::array::from_fn::<_, ROWS, _>(|n| 256 * q[n] + r[n]));
            for (n, [scale, second]) in of_rows.into_iter().enumerate() {
                sums[n] += match quant.scales {
                    Scales::Halves => {
                        x.scales[c] * (scale * low[n] as f32 + second * high[n] as f32)
                    }
                    Scales::Plain => x.scales[c] * scale * (low[n] + high[n]) as f32,
                    Scales::WithMin | Scales::Grouped => {
                        x.scales[c] * scale * (low[n] + high[n]) as f32
                            + second * x.weights_of_min[c]
                    }
                };
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

/// Products of floating-point cells.
///
/// # Safety
/// `panel` points at a panel of `cells` cells; each of `x` has as many numbers.
pub unsafe fn float_dots(float: Float, panel: *const u8, cells: usize, x: &[&[f32]]) -> Dots {
    let bytes = cells * CELL * ROWS * float.bytes();
    // SAFETY: as the caller says.
    let panel = unsafe { std::slice::from_raw_parts(panel, bytes) };
    let mut sums = [[0f32; ROWS]; BATCH];
    let pairs = panel.chunks_exact(2 * ROWS * float.bytes());
    for (p, pair) in pairs.enumerate() {
        let weights: [f32; 2 * ROWS] =
            std::array::from_fn(|i| number(float, &pair[i * float.bytes()..]));
        for (sums, x) in sums.iter_mut().zip(x) {
            for n in 0..ROWS {
                sums[n] += weights[2 * n] * x[2 * p] + weights[2 * n + 1] * x[2 * p + 1];
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::matmul::dots::Functions;
    use crate::matmul::format::Format;
    use crate::matmul::pack::{Source, pack};
    use akunu_kernels::case::Rng;
    use akunu_kernels::weight::Matrix;
    use akunu_types::DType;

    /// On machines with kernels of their own nothing else runs this code.
    #[test]
    fn a_panel_gives_the_products_of_its_rows() {
        let functions = Functions::of(Isa::Neon).unwrap();
        let (rows, cols) = (ROWS, 512);
        for dtype in DType::all() {
            let Some(format) = Format::of(dtype) else {
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
            let source = Source {
                weight,
                bytes: &bytes,
            };
            let cells = cols / CELL;
            let mut panel = vec![0; format.panel_bytes(cells)];
            pack(&source, 0, &mut panel);
            // 16-bit activations, and weights that were widened to f16: 1e-9 and 1e-7 of the power.
            let (dots, bound) = match format {
                Format::Quant(quant) => {
                    let mut quantised = Activations::default();
                    functions.quantise(&mut quantised, &x, quant.offset);
                    (functions.quant(quant, &panel, cells, &[quantised]), 1e-8)
                }
                Format::Float(float) => (functions.float(float, &panel, cells, &[&x]), 1e-6),
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
            assert!(error / power < bound, "{dtype}: {}", error / power);
        }
    }
}
