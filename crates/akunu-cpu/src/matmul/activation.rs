//! Activations as 8-bit numbers: `x = scale * q` with one scale for each cell of 32.
//!
//! A product of stored weights `w = s * (u - offset) + min` with such a cell is
//!
//! ```text
//! Σ w x = scale * s * (Σ u q - offset Σ q)  +  min * scale * Σ q
//! ```
//!
//! so that beside the numbers themselves only `Σ q` is needed: `start = -offset Σ q` is where the integer
//! sum begins, `weight_of_min = scale Σ q` is the factor of the minimum. Both are kept for each half of a
//! cell, since some formats have a scale for 16 columns.

use super::format::CELL;

/// Columns that share a `start`.
pub const HALF: usize = CELL / 2;

/// One vector of activations, cell by cell. The memory is reused from product to product.
#[derive(Default)]
pub struct Activations {
    /// The numbers, -127 to 127.
    pub values: Vec<i8>,
    /// A scale for each cell.
    pub scales: Vec<f32>,
    /// `-offset Σ q` of each half cell.
    pub starts: Vec<i32>,
    /// `scale Σ q` of each cell.
    pub weights_of_min: Vec<f32>,
}

impl Activations {
    /// Quantises `x`; a last cell that is not full is filled with zeros.
    ///
    /// Inlined, so that it is compiled with the vector instructions of its caller.
    #[inline(always)]
    pub fn quantise(&mut self, x: &[f32], offset: i32) {
        self.quantise_with(x, offset, quantise_cell);
    }

    /// The same with another way to quantise a cell: it writes the numbers and returns their scale and the sum
    /// of each half.
    #[inline(always)]
    pub fn quantise_with(
        &mut self,
        x: &[f32],
        offset: i32,
        quantise_cell: impl Fn(&[f32; CELL], &mut [i8; CELL]) -> (f32, [i32; 2]),
    ) {
        let cells = x.len().div_ceil(CELL);
        self.values.resize(cells * CELL, 0);
        self.scales.resize(cells, 0.0);
        self.starts.resize(2 * cells, 0);
        self.weights_of_min.resize(cells, 0.0);
        let (full, rest) = x.as_chunks::<CELL>();
        let mut last = [0.0; CELL];
        last[..rest.len()].copy_from_slice(rest);
        let (values, _) = self.values.as_chunks_mut::<CELL>();
        let (starts, _) = self.starts.as_chunks_mut::<2>();
        for (at, values) in values.iter_mut().enumerate() {
            let (scale, sums) = quantise_cell(full.get(at).unwrap_or(&last), values);
            self.scales[at] = scale;
            starts[at] = sums.map(|sum| -offset * sum);
            self.weights_of_min[at] = scale * (sums[0] + sums[1]) as f32;
        }
    }
}

/// `q = round(x / scale)` with the scale that makes the largest number 127.
#[inline(always)]
fn quantise_cell(x: &[f32; CELL], values: &mut [i8; CELL]) -> (f32, [i32; 2]) {
    let mut largest = [0f32; HALF];
    for i in 0..HALF {
        largest[i] = x[i].abs().max(x[HALF + i].abs());
    }
    let largest = largest.iter().fold(0f32, |a, &b| a.max(b));
    let scale = largest / 127.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let mut sums = [0i32; 2];
    for (half, sum) in sums.iter_mut().enumerate() {
        for i in 0..HALF {
            let q = (x[HALF * half + i] * inverse).round_ties_even() as i32;
            values[HALF * half + i] = q as i8;
            *sum += q;
        }
    }
    (scale, sums)
}
