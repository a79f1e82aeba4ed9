//! Activations as pairs of 8-bit numbers: `x = scale * (256 q + r)` with one scale for each cell of 32.
//!
//! Instructions multiply bytes; one byte alone would lose what the weights of a good file still have. With two the
//! error of an activation is that of 16 bits, and reading the weights takes longer than multiplying twice.
//!
//! A product of stored weights `w = s * (u - offset) + min` with such a cell is
//!
//! ```text
//! Σ w x = scale * s * (256 (Σ u q - offset Σ q) + Σ u r - offset Σ r)  +  min * scale * Σ (256 q + r)
//! ```
//!
//! so that beside the numbers themselves only their sums are needed: `-offset Σ q` and `-offset Σ r` are where the
//! integer sums start, `scale Σ (256 q + r)` is the weight of the minimum. All are kept for each half of a cell too,
//! since some formats have a scale for 16 columns.

use super::format::CELL;

/// Columns that share a start.
pub const HALF: usize = CELL / 2;
/// The largest of the 16-bit numbers: `256 * 127 + 127`.
const LARGEST: f32 = 32_639.0;

/// One vector of activations, cell by cell. The memory is reused from product to product.
#[derive(Default)]
pub struct Activations {
    /// `q` of a cell, then its `r`: -127 to 127.
    pub values: Vec<i8>,
    /// A scale for each cell.
    pub scales: Vec<f32>,
    /// `-offset Σ q` of both halves of a cell, then `-offset Σ r`.
    pub starts: Vec<i32>,
    /// `scale Σ (256 q + r)` of each cell.
    pub weights_of_min: Vec<f32>,
    /// The same of both halves of a cell.
    pub weights_of_half_mins: Vec<f32>,
}

/// What a quantised cell has beside its numbers: the scale, and the sums of q and of r in both halves.
pub type ScaleAndSums = (f32, [i32; 4]);

impl Activations {
    /// Quantises `x`; a last cell that is not full is filled with zeros.
    ///
    /// Inlined, so that it is compiled with the vector instructions of its caller.
    #[inline(always)]
    pub fn quantise(&mut self, x: &[f32], offset: i32) {
        self.quantise_with(x, offset, quantise_cell);
    }

    /// The same with another way to quantise a cell.
    #[inline(always)]
    pub fn quantise_with(
        &mut self,
        x: &[f32],
        offset: i32,
        quantise_cell: impl Fn(&[f32; CELL], &mut [i8; 2 * CELL]) -> ScaleAndSums,
    ) {
        let cells = x.len().div_ceil(CELL);
        self.values.resize(2 * cells * CELL, 0);
        self.scales.resize(cells, 0.0);
        self.starts.resize(4 * cells, 0);
        self.weights_of_min.resize(cells, 0.0);
        self.weights_of_half_mins.resize(2 * cells, 0.0);
        let (full, rest) = x.as_chunks::<CELL>();
        let mut last = [0.0; CELL];
        last[..rest.len()].copy_from_slice(rest);
        let (values, _) = self.values.as_chunks_mut::<{ 2 * CELL }>();
        let (starts, _) = self.starts.as_chunks_mut::<4>();
        let (halves, _) = self.weights_of_half_mins.as_chunks_mut::<2>();
        for (at, values) in values.iter_mut().enumerate() {
            let (scale, sums) = quantise_cell(full.get(at).unwrap_or(&last), values);
            self.scales[at] = scale;
            starts[at] = sums.map(|sum| -offset * sum);
            let [q0, q1, r0, r1] = sums;
            self.weights_of_min[at] = scale * (256 * (q0 + q1) + r0 + r1) as f32;
            halves[at] = [(q0, r0), (q1, r1)].map(|(q, r)| scale * (256 * q + r) as f32);
        }
    }

    /// Whether it has at least so many cells.
    pub fn has(&self, cells: usize) -> bool {
        self.values.len() >= 2 * cells * CELL
            && self.scales.len() >= cells
            && self.starts.len() >= 4 * cells
            && self.weights_of_min.len() >= cells
            && self.weights_of_half_mins.len() >= 2 * cells
    }
}

/// The scale of a cell with this largest number, and its inverse.
#[inline(always)]
pub fn scale_and_inverse(largest: f32) -> (f32, f32) {
    let scale = largest / LARGEST;
    (scale, if scale > 0.0 { 1.0 / scale } else { 0.0 })
}

/// `v = round(x / scale)`, `q = round(v / 256)`, `r = v - 256 q`. A rest of -128, whose opposite is no byte, is
/// rounded to -127.
#[inline(always)]
fn quantise_cell(x: &[f32; CELL], values: &mut [i8; 2 * CELL]) -> ScaleAndSums {
    let mut largest = [0f32; HALF];
    for i in 0..HALF {
        largest[i] = x[i].abs().max(x[HALF + i].abs());
    }
    let largest = largest.iter().fold(0f32, |a, &b| a.max(b));
    let (scale, inverse) = scale_and_inverse(largest);
    let mut sums = [0i32; 4];
    for half in 0..2 {
        for i in HALF * half..HALF * (half + 1) {
            let v = (x[i] * inverse).round_ties_even() as i32;
            let q = (v + 128) >> 8;
            let r = (v - 256 * q).max(-127);
            values[i] = q as i8;
            values[CELL + i] = r as i8;
            sums[half] += q;
            sums[2 + half] += r;
        }
    }
    (scale, sums)
}
